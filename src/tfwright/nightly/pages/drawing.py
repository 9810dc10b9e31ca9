"""Small drawings as inline SVG, made from numbers alone: no text of a build reaches them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from tfwright.nightly.state import Nightfall, Verdict

NIGHTS = 60
"""Nights in a sparkline."""
STEP, TALL, LOW = 3, 22, 4
"""Width of a night, and the heights of the longest and of an empty one, in SVG units."""
KIND: Mapping[Verdict, str] = {
    "good": "g",
    "unchanged": "u",
    "untested": "n",
    "smoke failed": "f",
    "failed": "f",
    "blocked": "b",
    "skipped": "s",
}
WIDE, HIGH, LEFT, RIGHT, BELOW = 560, 260, 60, 50, 40
"""Size of a plot, and the room for its labels, in SVG units."""
NAMED = {
    "g": "built",
    "u": "unchanged",
    "n": "untested",
    "f": "failed",
    "b": "blocked",
    "s": "out of budget",
}


@dataclass(frozen=True)
class Drawing:
    """An SVG element, and the sentence that says the same."""

    svg: str
    said: str


def sparkline(nights: Sequence[Nightfall], seconds: Mapping[str, float]) -> Drawing:
    """Draw the last nights: colour for the verdict, height for what the build took.

    `seconds` is by build. Bars of one colour share a path, which keeps 200 rows small.
    """
    shown = nights[-NIGHTS:]
    paths: dict[str, list[str]] = {}
    heights = bars([seconds.get(fell.build, 0.0) for fell in shown], TALL - LOW)
    # The newest night is at the right edge, however few there are.
    left = (NIGHTS - len(shown)) * STEP
    for fell, height in zip(shown, heights, strict=True):
        tall = round(LOW + height)
        bar = f"M{left} {TALL}v-{tall}h{STEP - 1}v{tall}z"
        paths.setdefault(KIND[fell.verdict], []).append(bar)
        left += STEP
    drawn = "".join(f'<path class="{kind}" d="{"".join(d)}"/>' for kind, d in paths.items())
    said = ", ".join(f"{len(bars)} {NAMED[kind]}" for kind, bars in paths.items())
    count = "1 night" if len(shown) == 1 else f"{len(shown)} nights"
    text = f"{count}: {said}" if shown else "no night yet"
    svg = (
        f'<svg class="spark" viewBox="0 0 {NIGHTS * STEP} {TALL}" role="img"'
        f' aria-label="{text}"><title>{text}</title>{drawn}</svg>'
    )
    return Drawing(svg, text)


def bars(values: Sequence[float], longest: int = 100) -> list[float]:
    """Return the length of a bar for each value; that of the largest is `longest`."""
    largest = max(values, default=0.0) or 1.0
    return [round(longest * value / largest, 1) for value in values]


Curves = Mapping[str, Sequence[tuple[float, float]]]


@dataclass(frozen=True)
class _Scale:
    """A logarithmic axis: from a value to a place in the drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = math.log(self.high / self.low) or 1.0
        share = math.log(value / self.low) / span
        return round(self.start + share * (self.end - self.start), 1)


def sweep(curves: Curves) -> str:
    """Draw operations a second over the size of matrices, one line a device, as an SVG.

    Both axes are logarithmic, since the sizes double. Returns nothing without a point.
    """
    shown = {
        name: [point for point in own if _can_be_drawn(*point)] for name, own in curves.items()
    }
    points = [point for own in shown.values() for point in own]
    if not points:
        return ""
    sizes = sorted({size for size, _ in points})
    across = _Scale(sizes[0], sizes[-1], LEFT, WIDE - RIGHT)
    powers = _powers([speed for _, speed in points])
    up = _Scale(powers[0], powers[-1], HIGH - BELOW, 10)
    grid = [_grid_line(up, power) for power in powers]
    named = [_tick(across, size) for size in sizes]
    lines = [_curve(name, own, across, up) for name, own in shown.items() if own]
    said = "GFLOP/s over rows of a matrix"
    return (
        f'<svg class="sweep" viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{said}">'
        f"<title>{said}</title>{''.join([*grid, *named, *lines])}"
        f'<text x="{LEFT}" y="{HIGH - 6}">rows and columns; upwards GFLOP/s</text></svg>'
    )


def _powers(speeds: Sequence[float]) -> list[float]:
    """Return powers of ten from below all speeds to above them: the grid then has short names."""
    low = math.floor(math.log10(min(speeds)))
    high = math.ceil(math.log10(max(speeds)))
    # Speeds that are all one power of ten would leave an axis without a length.
    return [10.0**power for power in range(low, max(high, low + 1) + 1)]


def _can_be_drawn(size: float, speed: float) -> bool:
    """Say whether a point has a place on logarithmic axes: the wheel's own code measured it."""
    return math.isfinite(size) and math.isfinite(speed) and min(size, speed) > 0


def _grid_line(up: _Scale, speed: float) -> str:
    y = up(speed)
    line = f'<path class="grid" d="M{LEFT} {y}H{WIDE - RIGHT}"/>'
    return f'{line}<text class="up" x="{LEFT - 8}" y="{y + 4}">{speed:g}</text>'


def _tick(across: _Scale, size: float) -> str:
    return f'<text class="across" x="{across(size)}" y="{HIGH - BELOW + 18}">{size:g}</text>'


def _curve(name: str, points: Sequence[tuple[float, float]], across: _Scale, up: _Scale) -> str:
    """Draw one device's line, with its name at the end."""
    # One path a device: the name next to its end takes the place of a legend.
    places = [(across(size), up(speed)) for size, speed in points]
    drawn = "L".join(f"{x} {y}" for x, y in places)
    x, y = places[-1]
    kind = "gpu" if name == "GPU" else "cpu"
    label = f'<text x="{x + 7}" y="{y + 4}">{escape(name)}</text>'
    return f'<g class="{kind}"><path d="M{drawn}"/>{label}</g>'
