"""Drawings on pages, as numbers that the templates draw: nights, speeds, and Bazel's profile."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tfwright.nightly import pages
from tfwright.nightly.builds import Verdict
from tfwright.nightly.state import KeptBuild, NightVerdict
from tfwright.terminal import text
from tfwright.tools.bazel.profile import Action, read

NIGHTS = 60
"""Nights in a sparkline."""
STEPS = 10
"""Heights of a night in it, from that of one without a build."""
VERDICTS: Mapping[Verdict, tuple[str, str]] = {
    "good": ("g", "built"),
    "unchanged": ("u", "unchanged"),
    "untested": ("n", "untested"),
    "smoke failed": ("f", "failed"),
    "failed": ("f", "failed"),
    "blocked": ("b", "blocked"),
    "skipped": ("s", "out of budget"),
}
"""The class of a bar, and what it stands for."""
LONGEST_SHOWN = 40
"""Differences that a page names."""
SHORTEST = 0.05
"""Seconds from which on a difference between two builds is listed."""
COLUMNS, HIGH = 240, 60
"""Steps in time of the drawing of actions at once, and its height."""


@dataclass(frozen=True)
class Sparkline:
    """The last nights: colour for the verdict, height for what the build took."""

    bars: Sequence[tuple[str, int]]
    """The class of each, and its height in steps."""
    sentence: str
    """The sentence that says the same."""


def sparkline(nights: Sequence[NightVerdict], seconds: Mapping[str, float]) -> Sparkline:
    """Return the drawing of the last nights; `seconds` is by build."""
    shown = nights[-NIGHTS:]
    if not shown:
        return Sparkline((), "no night yet")
    took = [seconds.get(night.build, 0.0) for night in shown]
    longest = max(took) or 1.0
    drawn = [VERDICTS[night.verdict] for night in shown]
    bars = [
        (kind, round(STEPS * length / longest))
        for (kind, _), length in zip(drawn, took, strict=True)
    ]
    counts = Counter(name for _, name in drawn)
    summary = ", ".join(f"{count} {name}" for name, count in counts.items())
    return Sparkline(bars, f"{text.counted(len(shown), 'night')}: {summary}")


Column = tuple[KeptBuild, Mapping[str, float]]
"""A build, and the parts of its column from below, by kind."""
TIME_UNITS = ((3600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True)
class BarPlot:
    """A column for each build, over an axis with numbers."""

    title: str
    columns: Sequence[Column]
    top: float
    """Where the axis ends."""
    written: Callable[[float], str]
    """Returns a number of the axis as people read it."""

    @property
    def kinds(self) -> list[str]:
        """What the columns are made of; one kind needs no legend."""
        parts = (part for _, own in self.columns for part in own.items())
        return [*dict.fromkeys(kind for kind, value in parts if value)]


def history(builds: Sequence[KeptBuild], smoke: Mapping[str, Mapping[str, float]]) -> list[BarPlot]:
    """Return the plots of what a target's builds took, gave and passed, oldest build first."""
    longest = max((build.seconds for build in builds), default=0.0)
    unit, name = next((pair for pair in TIME_UNITS if longest >= 2 * pair[0]), TIME_UNITS[-1])
    times = [(build, {"time": build.seconds / unit}) for build in builds]
    sizes = [(build, {"size": float(build.size)}) for build in builds if build.size]
    programs = [(build, smoke[build.id]) for build in builds if build.id in smoke]
    return [
        BarPlot(title, columns, _axis_top(columns), written)
        for title, columns, written in (
            ("Time of each build", times, lambda count: f"{count:g} {name}"),
            ("Size of each wheel", sizes, pages.size),
            ("Smoke programs", programs, lambda count: f"{count:g}"),
        )
        if any(sum(parts.values()) for _, parts in columns)
    ]


def _axis_top(columns: Sequence[Column]) -> float:
    """Return the round number that no column exceeds."""
    highest = max(sum(parts.values()) for _, parts in columns)
    power = 10.0 ** math.floor(math.log10(highest))
    return next(step * power for step in (1, 2, 3, 4, 6, 8, 10) if step * power >= highest)


@dataclass(frozen=True)
class Timeline:
    """All actions of a build."""

    actions: tuple[Action, ...]

    @property
    def begin(self) -> float:
        """When the first action began."""
        return min((action.start for action in self.actions), default=0.0)

    @property
    def seconds(self) -> float:
        """How long it took, from the first action to the end of the last one."""
        return max((action.end for action in self.actions), default=0.0) - self.begin

    def by_name(self) -> dict[str, float]:
        """Return the seconds of each action; those of one name count as their sum."""
        found: dict[str, float] = defaultdict(float)
        for action in self.actions:
            found[action.name] += action.seconds
        return found

    def at_once(self) -> list[float]:
        """Return how many actions ran at once, in equal steps over the build."""
        begin, step = self.begin, self.seconds / COLUMNS
        if step <= 0:
            return []
        busy = [0.0] * COLUMNS
        for action in self.actions:
            first = int((action.start - begin) / step)
            last = int((action.end - begin) / step)
            for column in range(first, min(last, COLUMNS - 1) + 1):
                # Each step counts the share of it that the action filled.
                left = max(action.start - begin, column * step)
                right = min(action.end - begin, (column + 1) * step)
                busy[column] += max(0.0, right - left) / step
        return busy


@dataclass(frozen=True)
class TimeChange:
    """An action in two builds."""

    name: str
    before: float | None
    """Seconds; None where the action is new, or was a cache hit."""
    now: float | None

    @property
    def seconds(self) -> float:
        """What it adds to the build; negative where it got faster."""
        return (self.now or 0.0) - (self.before or 0.0)


@dataclass(frozen=True)
class TimelineComparison:
    """Bazel's actions in a build, and how they differ from an earlier one's."""

    now: Timeline
    before: Timeline | None

    @cached_property
    def differences(self) -> list[TimeChange]:
        """The actions whose time changed most between the two builds."""
        if self.before is None:
            return []
        before, now = self.before.by_name(), self.now.by_name()
        changes = [TimeChange(name, before.get(name), now.get(name)) for name in before | now]
        changes.sort(key=lambda found: (-abs(found.seconds), found.name))
        # What a page would write as 0.0 s says nothing.
        return [found for found in changes if abs(found.seconds) >= SHORTEST][:LONGEST_SHOWN]

    @property
    def areas(self) -> list[str]:
        """Paths of how many actions ran at once, on one scale: now, and in the other build."""
        shapes = [timeline.at_once() for timeline in (self.now, self.before) if timeline]
        top = max((value for shape in shapes for value in shape), default=0.0)
        return [
            "L".join(f"{x} {HIGH - HIGH * y / top:.1f}" for x, y in enumerate(shape))
            for shape in shapes
            if shape and top
        ]


def compare_profiles(profile: Path, earlier: Path | None) -> TimelineComparison | None:
    """Return what one profile says, and its difference from an earlier one."""
    now, before = (Timeline(tuple(read(path) if path else ())) for path in (profile, earlier))
    if not now.actions:
        return None
    # An earlier build without actions would show every action as new.
    return TimelineComparison(now, before if before.actions else None)
