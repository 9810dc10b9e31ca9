"""Small drawings as inline SVG, made from numbers alone: no text of a build reaches them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    longest = max((seconds.get(fell.build, 0.0) for fell in shown), default=0.0)
    paths: dict[str, list[str]] = {}
    # The newest night is at the right edge, however few there are.
    start = (NIGHTS - len(shown)) * STEP
    for number, fell in enumerate(shown):
        share = seconds.get(fell.build, 0.0) / longest if longest else 0.0
        height = round(LOW + (TALL - LOW) * share) if fell.build else LOW
        left = start + number * STEP
        bar = f"M{left} {TALL}v-{height}h{STEP - 1}v{height}z"
        paths.setdefault(KIND[fell.verdict], []).append(bar)
    drawn = "".join(f'<path class="{kind}" d="{"".join(d)}"/>' for kind, d in paths.items())
    said = ", ".join(f"{len(bars)} {NAMED[kind]}" for kind, bars in paths.items())
    text = f"{len(shown)} nights: {said}" if shown else "no night yet"
    svg = (
        f'<svg class="spark" viewBox="0 0 {NIGHTS * STEP} {TALL}" role="img"'
        f' aria-label="{text}"><title>{text}</title>{drawn}</svg>'
    )
    return Drawing(svg, text)


def bars(values: Sequence[float], width: int = 100) -> list[float]:
    """Return the width of a bar for each value, in hundredths of the largest."""
    largest = max(values, default=0.0)
    return [round(width * value / largest, 1) if largest else 0.0 for value in values]
