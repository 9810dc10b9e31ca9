"""The pages of smoke: a line for each program, and an HTML report."""

import ast
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tfwright.smoke.run import TrialOutcome
from tfwright.smoke.smoking import SmokeReport
from tfwright.terminal import text
from tfwright.terminal.text import Style, Styled
from tfwright.tools import files, render

PAGE, DATA = "smoke.html", "smoke.json"
COLOURS: dict[str, Style] = {"passed": text.GOOD, "skipped": text.WARNING, "failed": text.BAD}
REASON = 36
"""Characters in front of what a program says of its outcome."""


def show_outcome(outcome: TrialOutcome) -> None:
    """Print the outcome of one program as soon as it ends."""
    status = Styled(f"  {outcome.status:<8}", COLOURS.get(outcome.status, ""))
    lead = f"{outcome.program:<16}{outcome.seconds:6.1f} s  "
    text.line(status, lead, outcome.reason, hang=REASON)
    # A program takes up to half a minute; into a pipe the lines would come all at once.
    sys.stdout.flush()


def show_report(report: SmokeReport) -> None:
    """Print the totals: each program's line was printed when it ended."""
    text.line(f"{report.wheel} on Python {report.python}: {tally(report)}")


def tally(report: SmokeReport) -> str:
    """Count the outcomes, in words."""
    counts = Counter[str](outcome.status for outcome in report.outcomes)
    statuses = ("passed", "skipped", "failed")
    return ", ".join(f"{counts[status]} {status}" for status in statuses if counts[status])


def write_report(report: SmokeReport, folder: Path) -> None:
    """Write the page with its plot, and the data, into a folder; say where the page is."""
    curves = report.curves
    speeds = {
        name: [(float(point.size), point.gflops) for point in own] for name, own in curves.items()
    }
    # For the table next to the plot.
    sizes = sorted({point.size for own in curves.values() for point in own})
    values = {
        "report": report,
        "tally": tally(report),
        "summaries": {outcome.program: summary(outcome.program) for outcome in report.outcomes},
        "table": {
            size: {name: one for name, own in curves.items() for one in own if one.size == size}
            for size in sizes
        },
        "plot": sweep_plot(speeds),
        "data": DATA,
    }
    files.write(folder / DATA, report.dump())
    files.write(folder / PAGE, render.render("smoke.html.j2", values))
    text.tell(f"  {folder / PAGE}")


def summary(program: str) -> str:
    """Return the first line of a program's docstring; empty for a name that no program has."""
    from tfwright.smoke import PROGRAMS

    path = PROGRAMS / f"{program}.py"
    if not path.is_file():
        return ""
    # Parsed and not imported: the programs need TensorFlow, and an old Python.
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    return (docstring or "").partition("\n")[0]


class SweepPlot(NamedTuple):
    """Operations a second over the size of matrices; both axes are logarithmic."""

    grid: Mapping[float, float]
    """By power of ten, how far down its line is."""
    ticks: Mapping[float, float]
    """By size, how far across its name is."""
    curves: Mapping[str, Sequence[tuple[float, float]]]
    """By device, the points of its line, across and down."""


def sweep_plot(curves: Mapping[str, Sequence[tuple[float, float]]]) -> SweepPlot | None:
    """Return a plot of 560 by 260 SVG units of sizes and speeds by device; None without a point."""
    shown = {
        # The wheel's own code measured them: not every point has a place on such axes.
        name: [pair for pair in own if all(math.isfinite(one) and one > 0 for one in pair)]
        for name, own in curves.items()
    }
    points = [point for own in shown.values() for point in own]
    if not points:
        return None
    sizes = sorted({size for size, _ in points})
    speeds = [speed for _, speed in points]
    low, high = math.floor(math.log10(min(speeds))), math.ceil(math.log10(max(speeds)))
    # Speeds that are all one power of ten would leave an axis without a length.
    powers = [10.0**power for power in range(low, max(high, low + 1) + 1)]

    def position(value: float, axis: Sequence[float], start: float, end: float) -> float:
        span = math.log(axis[-1] / axis[0]) or 1.0
        return round(start + math.log(value / axis[0]) / span * (end - start), 1)

    across = {size: position(size, sizes, 60, 510) for size in sizes}
    down = {speed: position(speed, powers, 220, 10) for speed in (*speeds, *powers)}
    return SweepPlot(
        {power: down[power] for power in powers},
        across,
        {name: [(across[x], down[y]) for x, y in own] for name, own in shown.items() if own},
    )
