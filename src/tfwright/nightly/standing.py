"""How a target stands: one word and a date, made from the verdicts of all its nights."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tfwright.nightly.state import Nightfall

StandingWord = Literal[
    "good",
    "good-unchanged",
    "untested",
    "newly failing",
    "still failing",
    "newly fixed",
    "blocked",
    "stale",
    "out of budget",
    "never run",
    "withdrawn",
]

GOOD = ("good", "unchanged", "untested")
FAILED = ("failed", "smoke failed")


@dataclass(frozen=True)
class Standing:
    """One target, now."""

    word: StandingWord
    since: dt.datetime | None
    """When this began: the first good night, or the first failure in a row."""
    last_good: dt.datetime | None
    nights_bad: int = 0
    """Nights since the last good one."""
    detail: str = ""

    @property
    def fine(self) -> bool:
        """Whether users have a current wheel."""
        return self.word in {"good", "good-unchanged", "untested", "newly fixed"}


def stand(history: Sequence[Nightfall], now: dt.datetime, stale_nights: int) -> Standing:
    """Return how a target stands after its verdicts, oldest first.

    A night out of budget or blocked by the host says nothing about the recipe: it neither breaks
    nor mends, but it lets the target grow stale.
    """
    if not history:
        return Standing("never run", None, None)
    last, folded = history[-1], _fold(history)
    word = _word(last, folded, now, stale_nights)
    since = {
        "stale": folded.last_good,
        "blocked": _start_of(history, "blocked"),
        "out of budget": _start_of(history, "skipped"),
        "newly failing": folded.bad_since,
        "still failing": folded.bad_since,
        "newly fixed": last.at,
        "good-unchanged": folded.built or folded.good_since,
    }.get(word, folded.good_since)
    return Standing(word, since, folded.last_good, folded.bad_nights, last.detail)


def _word(last: Nightfall, folded: "_Folded", now: dt.datetime, stale_nights: int) -> StandingWord:
    """Return the word for a target: what keeps users from a wheel comes before what is fine."""
    failing = folded.bad_since is not None
    # A target that fails is reported as failing, however long that lasts.
    waited = folded.bad_nights >= stale_nights and not failing
    # The first rule that holds gives the word, so their order is their weight.
    rules: tuple[tuple[bool, StandingWord], ...] = (
        (waited or _silent(last, now, stale_nights), "stale"),
        (last.verdict == "blocked", "blocked"),
        (last.verdict in FAILED and folded.bad_since == last.at, "newly failing"),
        (failing, "still failing"),
        (last.verdict == "skipped", "out of budget"),
        (folded.fixed, "newly fixed"),
        (last.verdict == "unchanged", "good-unchanged"),
        (last.verdict == "untested", "untested"),
    )
    return next((word for holds, word in rules if holds), "good")


class _Folded(NamedTuple):
    """What all nights together say."""

    good_since: dt.datetime | None
    bad_since: dt.datetime | None
    """The first failure in a row; None while there is none."""
    last_good: dt.datetime | None
    bad_nights: int
    """Nights since the last good one."""
    built: dt.datetime | None
    """The last good night that built something."""
    fixed: bool
    """Whether the last night was the first good one after a failure."""


def _fold(history: Sequence[Nightfall]) -> _Folded:
    """Go through all nights, oldest first."""
    good_since = bad_since = last_good = built = None
    bad_nights, fixed = 0, False
    for fell in history:
        if fell.verdict in GOOD:
            fixed = bad_since is not None
            good_since = fell.at if fixed or good_since is None else good_since
            last_good = fell.at
            bad_since = None
            bad_nights = 0
            # "unchanged" is good without a build: the page dates the wheel, not the night.
            built = fell.at if fell.build else built
            continue
        bad_nights += 1
        fixed = False
        if fell.verdict in FAILED and bad_since is None:
            bad_since = fell.at
    return _Folded(good_since, bad_since, last_good, bad_nights, built, fixed)


def _silent(last: Nightfall, now: dt.datetime, stale_nights: int) -> bool:
    """Say whether no night came for too long, as when the timer is switched off.

    A night far in the future has an unknown age: the clock was wrong then.
    """
    return abs(now - last.at) > dt.timedelta(days=stale_nights)


def _start_of(history: Sequence[Nightfall], verdict: str) -> dt.datetime:
    """Return when the last run of one verdict began."""
    since = history[-1].at
    for fell in reversed(history):
        if fell.verdict != verdict:
            break
        since = fell.at
    return since
