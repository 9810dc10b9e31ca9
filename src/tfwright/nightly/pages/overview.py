"""The first page: one line for each target, trouble first, with what broke and what helps."""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tfwright.documents.nightly import NightlyFile, Target, targets
from tfwright.nightly import gates
from tfwright.nightly.builds import NightlyBuild
from tfwright.nightly.pages import drawing, words
from tfwright.nightly.standing import Standing, StandingWord, stand
from tfwright.nightly.state import CheckedOn, KeptBuild, Nightfall, State

ORDER: tuple[StandingWord, ...] = (
    "newly failing",
    "still failing",
    "stale",
    "blocked",
    "out of budget",
    "never run",
    "withdrawn",
    "newly fixed",
    "untested",
    "good",
    "good-unchanged",
)
TONE: Mapping[StandingWord, str] = {
    "newly failing": "bad",
    "still failing": "bad",
    "stale": "bad",
    "blocked": "warn",
    "out of budget": "warn",
    "never run": "dim",
    "withdrawn": "warn",
    "newly fixed": "good",
    "untested": "warn",
    "good": "good",
    "good-unchanged": "good",
}
MARK = {"bad": "\N{BALLOT X}", "warn": "!", "good": "\N{CHECK MARK}", "dim": "\N{MIDDLE DOT}"}
"""Colour alone tells nothing to one reader in twelve."""


@dataclass(frozen=True)
class OverviewRow:
    """One target on the first page."""

    target: Target
    standing: Standing
    kept: KeptBuild | None
    """The newest wheel that passed its tests; the newest of all if none did. Never a yanked one."""
    withdrawn: Mapping[str, str]
    """By version, why newer wheels than that one were yanked."""
    size_change: str
    spark: drawing.Drawing
    reproduced: str
    reproduced_tone: str
    install: str
    failed: NightlyBuild | None
    """What broke, while the target fails."""
    failed_here: bool
    """Whether the page of that build is still there."""
    changed: str
    """How what failed differs from the last good build, or that there is none."""
    days: int
    """Days since the standing began."""
    worker: str
    """The machine that built the newest wheel; empty for the build host itself."""
    builds: Sequence[KeptBuild]
    """Its builds, oldest first."""
    yanked: Mapping[str, str]
    """Why wheels were yanked, by file name, of any target."""
    listed: bool
    """Whether nightly.toml still lists it."""

    @property
    def tone(self) -> str:
        """The colour of its standing."""
        return TONE[self.standing.word]

    @property
    def mark(self) -> str:
        """The character that says the same as the colour."""
        return MARK[self.tone]


@dataclass(frozen=True)
class TargetHistory:
    """What the state knows of one target."""

    nights: Sequence[Nightfall]
    builds: Sequence[KeptBuild]
    """Oldest first."""
    check: CheckedOn | None
    """The last attempt to reproduce one of them."""
    reproduced: Collection[str]
    """Identifiers of the builds, of any target, that gave the same bytes again."""
    yanked: Mapping[str, str]
    """Reason by wheel, of any target."""
    listed: bool
    """Whether nightly.toml still lists it."""


def rows(
    nightly: NightlyFile, state: State, yanked: Mapping[str, str], now: dt.datetime
) -> list[OverviewRow]:
    """Return every target that a host has or had, those in trouble first.

    `yanked` holds the reason for each yanked wheel, by file name.

    One that nightly.toml does not list any more keeps its builds, and becomes stale.
    """
    # More than a year is not shown, and a host may have ten years of nights.
    since = max(0, state.nights() - 400)
    history = state.history(since)
    checks = state.checks("reproduced")
    reproduced = gates.reproductions(state)
    builds: dict[str, list[KeptBuild]] = defaultdict(list)
    for build in state.builds():
        builds[build.target].append(build)
    listed = {target.name: target for target in targets(nightly)}
    former = {name: Target(name=name, recipe=name) for name in builds}
    found = []
    for name, target in (former | listed).items():
        past = TargetHistory(
            # One that has left nightly.toml may have had its last night before those.
            history.get(name) or state.history_of(name, 1),
            builds[name],
            checks.get(name),
            reproduced,
            yanked,
            listed=name in listed,
        )
        found.append(_row(nightly, state, target, past, now))
    found.sort(key=lambda row: (ORDER.index(row.standing.word), row.target.name))
    return found


def _row(
    nightly: NightlyFile, state: State, target: Target, past: TargetHistory, now: dt.datetime
) -> OverviewRow:
    """Return one line of the page."""
    wheels = _offered(past)
    newest = wheels[-1] if wheels else None
    withdrawn = _withdrawn(past, newest)
    standing = stand(past.nights, now, nightly.notices.stale_nights)
    if standing.fine and withdrawn and newest is None:
        # The build is as good as it was, but its users have no wheel.
        standing = replace(standing, word="withdrawn", since=None)
    before = wheels[-2].size if len(wheels) > 1 else 0
    failed = None if standing.fine else _last_failure(state, past.nights)
    reproduced, reproduced_tone = _reproduction(newest, past)
    seconds = {build.id: build.seconds for build in past.builds}
    return OverviewRow(
        target=target,
        standing=standing,
        kept=newest,
        withdrawn=withdrawn,
        size_change=words.change(before, newest.size) if newest else "",
        spark=drawing.sparkline(past.nights, seconds),
        reproduced=reproduced,
        reproduced_tone=reproduced_tone,
        install=install_command(nightly, newest),
        failed=failed,
        failed_here=bool(failed and failed.id in seconds),
        changed=_changed(failed, past.builds) if failed else "",
        days=words.days_since(standing.since, now),
        worker=_worker(nightly, state, newest),
        builds=past.builds,
        yanked=past.yanked,
        listed=past.listed,
    )


def _offered(past: TargetHistory) -> Sequence[KeptBuild]:
    """Return the builds whose wheels the page offers: those that passed, else all in the index."""
    listed = [
        build
        for build in past.builds
        if build.listed and not build.hidden and build.wheel not in past.yanked
    ]
    # A wheel that failed its tests is in the index, but no reason to leave the last good one.
    return [build for build in listed if build.good] or listed


def _withdrawn(past: TargetHistory, newest: KeptBuild | None) -> Mapping[str, str]:
    """Return why wheels that are newer than the offered one were yanked, by version."""
    found = {}
    for build in reversed(past.builds):
        if newest and build.id == newest.id:
            break
        if build.listed and build.wheel in past.yanked:
            found[build.version] = past.yanked[build.wheel] or "no reason given"
    return found


def _changed(failed: NightlyBuild, builds: Sequence[KeptBuild]) -> str:
    """Say how a build that failed differs from the last good one, or that there is none.

    Empty for a build of an earlier tfwright that was not compared with the last good one.
    """
    if not failed.against:
        return _nothing_good(builds)
    parts = [*failed.changed]
    if failed.commits:
        count = len(failed.commits)
        plural = "" if count == 1 else "s"
        newest = failed.commits[0].subject[:100]
        parts.append(f"{count} commit{plural}, newest “{newest}”")
    return ", ".join(parts) or "nothing that tfwright knows of"


def _nothing_good(builds: Sequence[KeptBuild]) -> str:
    """Say that a target has no good build; nothing if it has one."""
    if any(build.good for build in builds):
        return ""
    built = any(build.result == "built" for build in builds)
    return "none yet" if built else "none; it was never built"


def _worker(nightly: NightlyFile, state: State, newest: KeptBuild | None) -> str:
    """Return the machine that built a wheel."""
    # The short form of a build lacks it; its document is read only where others build.
    if nightly.on == "here" or newest is None:
        return ""
    build = state.build(newest.id)
    return build.worker if build else ""


def _last_failure(state: State, nights: Sequence[Nightfall]) -> NightlyBuild | None:
    """Return the newest build of a target that fails."""
    identifier = next((fell.build for fell in reversed(nights) if fell.build), "")
    return state.build(identifier) if identifier else None


def _reproduction(newest: KeptBuild | None, past: TargetHistory) -> tuple[str, str]:
    """Say whether the newest wheel was built again to the same bytes, and in which tone."""
    if newest and newest.id in past.reproduced:
        return "reproduced", "good"
    check = past.check
    if check and not check.passed:
        return f"not reproduced on {words.day(check.at)}: {check.detail}", "bad"
    return "not reproduced yet", "dim"


def install_command(nightly: NightlyFile, build: KeptBuild | NightlyBuild | None) -> str:
    """Return the command that installs exactly this wheel.

    A version with a local part cannot be on a public index, so the exact pin also keeps out a
    wheel of the same name from elsewhere.
    """
    if build is None or not build.wheel or not nightly.url:
        return ""
    project = build.wheel.split("-")[0].replace("_", "-")
    index = f"{nightly.url}r/{build.target}/"
    return f"pip install --extra-index-url {index} {project}=={build.version}"


def sentence(found: Sequence[OverviewRow]) -> tuple[str, str]:
    """Say in one sentence whether all is well; return it with its tone."""
    if not found:
        return "No recipe is listed in nightly.toml yet.", "dim"
    counts: dict[str, int] = {}
    for row in found:
        counts[row.standing.word] = counts.get(row.standing.word, 0) + 1
    fine = sum(row.standing.fine for row in found)
    if fine == len(found):
        every = "The recipe has" if fine == 1 else f"All {fine} recipes have"
        return f"{every} a current wheel.", "good"
    parts = [f"{count} {word}" for word, count in sorted(counts.items(), key=_by_order)]
    tone = "bad" if any(row.tone == "bad" for row in found) else "warn"
    return (f"{fine} of {len(found)} recipes have a current wheel: {', '.join(parts)}.", tone)


def _by_order(item: tuple[str, int]) -> int:
    return [str(word) for word in ORDER].index(item[0])
