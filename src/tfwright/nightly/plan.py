"""What is worth building tonight, in which order, within the budget."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from tfwright.documents.nightly import Target
from tfwright.nightly.builds import NightlyBuild, differing_parts
from tfwright.nightly.state import CheckedOn, NightVerdict, State
from tfwright.nightly.status import FAILED

UNKNOWN_SECONDS = 3600.0
"""How long a target is expected to take that was never built here."""
RANK = {
    "asked for": 0,
    "changed": 1,
    "never built": 1,
    "failed before": 2,
    "unchanged": 3,
    "the index refuses it": 3,
    "blocked": 4,
}
"""Why a target is or is not built: the lowest number comes first."""
LONGEST_WAIT = 32
"""Nights between two attempts at a wheel that the index refuses."""


@dataclass(frozen=True)
class PlannedTarget:
    """A target, and why it is or is not built tonight."""

    target: Target
    fingerprint: Mapping[str, str]
    why: str
    changed: tuple[str, ...] = ()
    """The parts that differ from the last good build."""
    seconds: float = UNKNOWN_SECONDS
    """What the last build took."""
    within_budget: bool = True
    last_good: str = ""
    """Identifier of the last good build."""
    detail: str = ""
    """Why the last wheel is not in the index, or what keeps this host from building it."""

    @property
    def due(self) -> bool:
        """Whether a night has to build it."""
        return self.why not in {"unchanged", "the index refuses it", "blocked"}


@dataclass(frozen=True)
class Past:
    """What earlier nights say of a target."""

    last: NightlyBuild | None
    last_good: NightlyBuild | None
    nights: Sequence[NightVerdict]

    @property
    def waits(self) -> bool:
        """Whether the next attempt at a refused wheel has to wait: 1, 2, 4 nights and so on.

        The same inputs give the same name again, which the index refuses again. Only different
        bytes from the same inputs, or a person who corrects ``local``, can change that.
        """
        attempts = since = 0
        for night in reversed(self.nights):
            # Another failure before this one was no attempt at this name.
            if night.verdict != "failed" or night.detail != self.nights[-1].detail:
                break
            attempts += bool(night.build)
            # Nights since the newest attempt: those before it do not count.
            since += attempts == 0
        doubled: int = 2 ** max(0, attempts - 1)
        return since + 1 < min(doubled, LONGEST_WAIT)


def read_past(state: State, targets: Sequence[Target]) -> dict[str, Past]:
    """Read what is known of each target."""
    # One query for all targets: a host may have hundreds of them.
    history, kept = state.history(), state.builds()
    # A host that lacks something says nothing about the fingerprint.
    last = {build.target: build.id for build in kept if build.result != "blocked"}
    good = {build.target: build.id for build in kept if build.good}
    found = {}
    for name in (target.name for target in targets):
        newest, newest_good = last.get(name, ""), good.get(name, "")
        # Usually the same build: its document is read once.
        documents = {identifier: state.build(identifier) for identifier in (newest, newest_good)}
        found[name] = Past(documents[newest], documents[newest_good], history.get(name, []))
    return found


def plan_target(
    target: Target, fingerprint: Mapping[str, str], past: Past, *, asked: bool = False
) -> PlannedTarget:
    """Say whether a target has to be built, given what decides its wheel now."""
    good, last = past.last_good, past.last
    why = "unchanged"
    if asked:
        why = "asked for"
    elif last is None:
        why = "never built"
    elif differing_parts(last.fingerprint, fingerprint):
        why = "changed"
    # The same inputs may build tonight: a server or a disk may have been at fault.
    elif not last.good:
        why = "the index refuses it" if last.unpublished and past.waits else "failed before"
    return PlannedTarget(
        target,
        fingerprint,
        why,
        differing_parts(good.fingerprint, fingerprint) if good else (),
        last.seconds if last else UNKNOWN_SECONDS,
        last_good=good.id if good else "",
        detail=last.unpublished if last else "",
    )


def sorted_by_worth(
    found: Sequence[PlannedTarget], past: Mapping[str, Past]
) -> list[PlannedTarget]:
    """Sort by worth: what changed, of this what was built longest ago; then the newest failure.

    Among equals the shorter build comes first, so that a budget serves the most targets.
    """

    def worth(item: PlannedTarget) -> tuple[float, float, float, str]:
        newest_first = past[item.target.name].nights[::-1]
        if item.why == "failed before":
            failures = takewhile(lambda night: night.verdict in FAILED, newest_first)
            turn = -min((night.at.timestamp() for night in failures), default=0.0)
        else:
            # Not by name: where more changes each night than fits, the last ones would never come.
            turn = next((night.at.timestamp() for night in newest_first if night.build), 0.0)
        return RANK[item.why], turn, item.seconds, item.target.name

    return sorted(found, key=worth)


def mark_fitting(found: Sequence[PlannedTarget], hours: float) -> list[PlannedTarget]:
    """Mark which targets fit into the night's budget, by what they took last time.

    The first one always fits: a build longer than every night would otherwise never come.
    """
    left = hours * 3600
    marked = []
    first = True
    for item in found:
        fits = not item.due or first or item.seconds <= left
        if item.due and fits:
            left -= item.seconds
            first = False
        # A target that does not fit is passed over; a shorter one after it may still fit.
        marked.append(item if fits else replace(item, within_budget=False))
    return marked


def longest_unchecked(
    candidates: Iterable[Target], checks: Mapping[str, CheckedOn], now: dt.datetime
) -> Target | None:
    """Return the candidate that was checked longest ago; one never checked comes first."""
    never = dt.datetime.min.replace(tzinfo=dt.UTC)

    def turn(target: Target) -> tuple[dt.datetime, str]:
        check = checks.get(target.name)
        # Noted while the clock was wrong: it would not have its turn again before that time.
        return check.at if check and check.at <= now else never, target.name

    return min(candidates, key=turn, default=None)
