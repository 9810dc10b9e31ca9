"""Bazel's profile as a timeline, and what differs between the timelines of two builds.

The profile is Chrome's trace format: a JSON object with one event a line. A killed Bazel leaves it
without an end, so it is read line by line.
"""

import gzip
import heapq
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, BinaryIO

from tfwright.tools import json_text

LONGEST_SHOWN = 40
"""Actions, or differences, that a page names."""
BOXES = 1500
"""The longest actions, which the chart of lanes draws; each takes about 150 bytes of the page."""
LANE, WIDTH = 12, 1000
"""Height of a lane and width of the chart, in SVG units."""
SLOWER, NOTICED = 1.25, 0.2
"""From which factor, and from how many seconds on, an action counts as slower or faster."""
SHORTEST = 0.05
"""Seconds from which on a difference between two builds is listed."""
COLUMNS = 240
"""Steps in time of the drawing."""
LARGEST_LINE = 1024 * 1024
LARGEST = 512 * 1024**2
"""Bytes of a profile that are read, unpacked: it comes out of a build."""


@dataclass(frozen=True)
class TimedAction:
    """One action of Bazel."""

    name: str
    start: float
    """Seconds since the profile began."""
    seconds: float


@dataclass(frozen=True)
class Timeline:
    """All actions of a build."""

    actions: tuple[TimedAction, ...]

    @property
    def seconds(self) -> float:
        """How long it took, from the first action to the end of the last one."""
        ends = [action.start + action.seconds for action in self.actions]
        begin = min((action.start for action in self.actions), default=0.0)
        return max(ends, default=0.0) - begin

    @property
    def busy(self) -> float:
        """Seconds of all actions together."""
        return sum(action.seconds for action in self.actions)

    def longest(self) -> list[TimedAction]:
        """Return the actions that took longest."""
        ranked = sorted(self.actions, key=lambda action: -action.seconds)
        return ranked[:LONGEST_SHOWN]


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


def read(path: Path) -> Timeline:
    """Read a profile, plain or packed with gzip; what cannot be read is left out."""
    actions = []
    # A killed Bazel cuts its profile off in the middle of a block.
    with suppress(OSError, EOFError, zlib.error), _opened(path) as stream:
        for action in _actions(stream):
            actions.append(action)  # noqa: PERF402 what was read before a fault stays
    return Timeline(tuple(actions))


def _opened(path: Path) -> "BinaryIO | gzip.GzipFile":
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if packed else path.open("rb")


def _actions(stream: "BinaryIO | gzip.GzipFile") -> Iterator[TimedAction]:
    total = 0
    while line := stream.readline(LARGEST_LINE):
        total += len(line)
        if total > LARGEST:
            return
        event = _event(line)
        if event.get("cat") == "action processing" and "dur" in event:
            action = _action(event)
            if action:
                yield action


def _event(line: bytes) -> Mapping[str, Any]:
    try:
        found = json_text.parsed(line.strip().rstrip(b","))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _action(event: Mapping[str, Any]) -> TimedAction | None:
    try:
        start, seconds = float(event["ts"]) / 1e6, float(event["dur"]) / 1e6
    except (KeyError, TypeError, ValueError):
        return None
    sound = 0 <= start < 1e9 and 0 <= seconds < 1e9  # noqa: PLR2004 thirty years
    return TimedAction(str(event.get("name", ""))[:400], start, seconds) if sound else None


def parallel(timeline: Timeline) -> list[float]:
    """Return how many actions ran at once, in equal steps over the build."""
    if not timeline.actions or timeline.seconds <= 0:
        return []
    begin = min(action.start for action in timeline.actions)
    step = timeline.seconds / COLUMNS
    busy = [0.0] * COLUMNS
    for action in timeline.actions:
        first = int((action.start - begin) / step)
        last = int((action.start + action.seconds - begin) / step)
        for column in range(first, min(last, COLUMNS - 1) + 1):
            # Each step counts the share of it that the action filled.
            left = max(action.start - begin, column * step)
            right = min(action.start + action.seconds - begin, (column + 1) * step)
            busy[column] += max(0.0, right - left) / step
    return busy


def difference(before: Timeline, now: Timeline) -> list[TimeChange]:
    """Return the actions whose time changed most between two builds."""
    times: dict[str, list[float | None]] = defaultdict(lambda: [None, None])
    for number, timeline in enumerate((before, now)):
        for action in timeline.actions:
            pair = times[action.name]
            # An action that was repeated, or that has a twin of its name, counts as their sum.
            pair[number] = (pair[number] or 0.0) + action.seconds
    changes = [TimeChange(name, *pair) for name, pair in times.items()]
    changes.sort(key=lambda found: (-abs(found.seconds), found.name))
    # What a page would write as 0.0 s says nothing.
    return [found for found in changes if abs(found.seconds) >= SHORTEST][:LONGEST_SHOWN]


def drawn(timeline: Timeline, other: Timeline | None = None) -> str:
    """Return an SVG of how many actions ran at once; `other` is drawn behind as a line."""
    shapes = [parallel(timeline)] + ([parallel(other)] if other else [])
    top = max((value for shape in shapes for value in shape), default=0.0)
    if not top:
        return ""
    height = 60
    area = _path(shapes[0], top, height)
    parts = [f'<path class="area" d="M0 {height}L{area}L{COLUMNS} {height}z"/>']
    if other and shapes[1]:
        parts.append(f'<path class="other" d="M{_path(shapes[1], top, height)}"/>')
    return (
        f'<svg class="timeline" viewBox="0 0 {COLUMNS} {height}" preserveAspectRatio="none"'
        f' role="img" aria-label="actions at once">{"".join(parts)}</svg>'
    )


def _path(shape: list[float], top: float, height: int) -> str:
    points = (f"{x} {height - height * y / top:.1f}" for x, y in enumerate(shape))
    return "L".join(points)


def lanes(now: Timeline, before: Timeline | None = None) -> str:
    """Return an SVG in which each action is a box in a lane, from its start to its end.

    Compared with an earlier build, the boxes of new, slower and faster actions differ in colour.
    Each box says its name and its seconds. Returns nothing for an empty timeline.
    """
    if now.seconds <= 0:
        return ""
    longest = sorted(now.actions, key=lambda action: -action.seconds)[:BOXES]
    begin = min(action.start for action in now.actions)
    times = _times(before) if before else {}
    boxes: dict[str, list[str]] = defaultdict(list)
    count = 0
    for action, lane in _in_lanes(longest):
        count = max(count, lane + 1)
        kind = _kind(action, times) if before else "same"
        boxes[kind].append(_box(action, lane, begin, now.seconds, times))
    height = count * LANE
    groups = [f'<g class="{kind}">{"".join(own)}</g>' for kind, own in boxes.items()]
    return (
        f'<svg class="lanes" viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="none"'
        f' style="height:{min(height, 40 * LANE)}px" role="img"'
        f' aria-label="when each action ran">{"".join(groups)}</svg>'
    )


def _in_lanes(actions: list[TimedAction]) -> Iterator[tuple[TimedAction, int]]:
    """Yield each action with the first lane that is free when it starts."""
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    for action in sorted(actions, key=lambda found: found.start):
        while busy and busy[0][0] <= action.start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        # As many lanes as there are actions at once: without a free one, the next is new.
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (action.start + action.seconds, lane))
        yield action, lane


def _times(timeline: Timeline) -> dict[str, float]:
    """Return the longest time of each action by its name."""
    found: dict[str, float] = {}
    for action in timeline.actions:
        found[action.name] = max(found.get(action.name, 0.0), action.seconds)
    return found


def _kind(action: TimedAction, times: Mapping[str, float]) -> str:
    """Say how an action compares with the same one of an earlier build."""
    earlier = times.get(action.name)
    if earlier is None:
        return "new"
    if abs(action.seconds - earlier) < NOTICED:
        return "same"
    if action.seconds > earlier * SLOWER:
        return "slower"
    return "faster" if action.seconds * SLOWER < earlier else "same"


def _box(
    action: TimedAction, lane: int, begin: float, seconds: float, times: Mapping[str, float]
) -> str:
    left = WIDTH * (action.start - begin) / seconds
    # A box that is narrower than half a unit could not be seen.
    width = max(0.5, WIDTH * action.seconds / seconds)
    said = f"{action.name}, {action.seconds:.1f} s"
    if action.name in times:
        said += f", before {times[action.name]:.1f} s"
    return (
        f'<rect x="{left:.1f}" y="{lane * LANE + 1}" width="{width:.1f}" height="{LANE - 2}">'
        f"<title>{escape(said)}</title></rect>"
    )
