"""The pages of smoke: a line for each program, a table of all runs, and an HTML report."""

import ast
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Style, Styled
from tfwright.tools import files, render

if TYPE_CHECKING:
    from tfwright.smoke.run import Point, TrialOutcome
    from tfwright.smoke.smoking import SmokeReport

PAGE, PLOT, DATA = "smoke.html", "sweep.png", "smoke.json"
COLOURS: dict[str, Style] = {"passed": text.GOOD, "skipped": text.WARNING, "failed": text.BAD}
REASON = 36
"""Characters in front of what a program says of its outcome."""
AXES = ("rows and columns", "GFLOP/s")


def show_outcome(outcome: "TrialOutcome") -> None:
    """Print the outcome of one program as soon as it ends."""
    status = Styled(f"  {outcome.status:<8}", COLOURS.get(outcome.status, ""))
    lead = f"{outcome.program:<16}{outcome.seconds:6.1f} s  "
    text.line(status, lead, outcome.reason, hang=REASON)
    # A program takes up to half a minute; into a pipe the lines would come all at once.
    sys.stdout.flush()


def show_report(report: "SmokeReport") -> None:
    """Print the totals: each program's line was printed when it ended."""
    text.line(f"{report.wheel} on Python {report.python}: {tally(report)}")


def tally(report: "SmokeReport") -> str:
    """Count the outcomes, in words."""
    counts = Counter[str](outcome.status for outcome in report.outcomes)
    statuses = ("passed", "skipped", "failed")
    return ", ".join(f"{counts[status]} {status}" for status in statuses if counts[status])


def show_runs(reports: list["SmokeReport"]) -> None:
    """Print a Markdown table of the wheels that were tried on this machine, one row each."""
    print("| wheel | Python | result | within | CNN | A^10 + B^10 | matmul at best |")
    print("|---|---|---|---|---|---|---|")
    for report in sorted(reports, key=_by_project_and_version):
        result = tally(report)
        if report.failures:
            # The first failure mostly causes the others.
            first = report.failures[0]
            result += f"; {first.program}: {_plain(first.reason)}"
        curves = report.curves.items()
        best = [f"{name} {max(point.gflops for point in points):.0f}" for name, points in curves]
        cells = [
            # Backquotes, or Markdown would take the stars and underscores.
            f"`{report.wheel}`",
            report.python,
            result,
            ", ".join(f"`{line}`" for line in report.requirements),
            *(_seconds(report, name) for name in ("cnn", "powers")),
            ", ".join(f"{each} GFLOP/s" for each in best),
        ]
        print(f"| {' | '.join(cell or '-' for cell in cells)} |")


def _by_project_and_version(report: "SmokeReport") -> tuple[str, list[int]]:
    project, version, *_ = *report.wheel.split("-"), ""
    # Of any other part, such as "0rc1", nothing is known.
    parts = [part if re.fullmatch(r"[0-9]{1,18}", part) else "-1" for part in version.split(".")]
    return project, [*map(int, parts)]


def _seconds(report: "SmokeReport", program: str) -> str:
    """Return the seconds of a program on the CPU, and on the GPU where there are such."""
    shown = []
    for outcome in report.outcomes:
        for device in ("cpu", "gpu") if outcome.program == program else ():
            value = outcome.numbers.get(f"{device}_seconds")
            # The numbers come from a process that ran the wheel: anything else is left out.
            if isinstance(value, float):
                shown.append(f"{device.upper()} {value:.2f} s")
    return ", ".join(shown)


def _plain(reason: str) -> str:
    """Return what a wheel said as text that Markdown takes for nothing else."""
    letters = []
    for letter in reason:
        # A bar would end the cell, and brackets or angles could make a link or HTML.
        harmless = letter.isalnum() or letter in " .,:;/-"
        letters.append(letter if harmless else f"&#{ord(letter)};")
    return "".join(letters)


def write_report(report: "SmokeReport", folder: Path) -> None:
    """Write the page, the plot as a picture and the data into a folder; say where the page is."""
    curves = {
        name: [(float(point.size), point.gflops) for point in points]
        for name, points in report.curves.items()
    }
    # A wheel that does not import has no curves, and still gets its page.
    if curves:
        files.write(folder / PLOT, render.growth_plot(curves, *AXES, form="png"))
    values = {
        "report": report,
        "tally": tally(report),
        "summaries": {outcome.program: summary(outcome.program) for outcome in report.outcomes},
        "table": sizes(report.curves),
        "plot": render.growth_plot(curves, *AXES, form="svg").decode() if curves else "",
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


def sizes(curves: "dict[str, list[Point]]") -> list[tuple[int, dict[str, "Point"]]]:
    """Return the points of all curves by size, for the table next to the plot."""
    by_size: dict[int, dict[str, Point]] = {}
    for name, points in curves.items():
        for point in points:
            by_size.setdefault(point.size, {})[name] = point
    return sorted(by_size.items(), key=lambda item: item[0])
