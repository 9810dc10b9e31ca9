"""The pages of smoke: a line for each program, a table of all runs, and an HTML report."""

import ast
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Style, Styled
from tfwright.tools import files, plotting, render

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
        print(f"| {' | '.join(_cells(report))} |")


def _cells(report: "SmokeReport") -> list[str]:
    by_name = {outcome.program: outcome for outcome in report.outcomes}
    # Backquotes, or Markdown would take the stars and underscores.
    bounds = ", ".join(f"`{line}`" for line in report.requirements) or "-"
    return [
        f"`{report.wheel}`",
        report.python,
        _result(report),
        bounds,
        *(_seconds(by_name.get(name)) for name in ("cnn", "powers")),
        _best(report),
    ]


def _by_project_and_version(report: "SmokeReport") -> tuple[str, list[int]]:
    project, _, rest = report.wheel.partition("-")
    version = rest.partition("-")[0]
    return project, [_number(part) for part in version.split(".")]


def _number(part: str) -> int:
    return int(part) if re.fullmatch(r"[0-9]{1,18}", part) else -1


def _result(report: "SmokeReport") -> str:
    """Count, and say the first failure."""
    counts = tally(report)
    if not report.failures:
        return counts
    # The first failure mostly causes the others.
    first = report.failures[0]
    return f"{counts}; {first.program}: {_plain(first.reason)}"


def _seconds(outcome: "TrialOutcome | None") -> str:
    """Return the seconds on the CPU, and on the GPU where there are such."""
    numbers = outcome.numbers if outcome else {}
    shown = []
    for device in ("cpu", "gpu"):
        value = numbers.get(f"{device}_seconds")
        # The numbers come from a process that ran the wheel: anything else is left out.
        if isinstance(value, float):
            shown.append(f"{device.upper()} {value:.2f} s")
    return ", ".join(shown) or "-"


def _best(report: "SmokeReport") -> str:
    """Return the highest point of each curve of the sweep."""
    shown = []
    for name, points in report.curves.items():
        best = max(point.gflops for point in points)
        shown.append(f"{name} {best:.0f} GFLOP/s")
    return ", ".join(shown) or "-"


def _plain(said: str) -> str:
    """Return what a wheel said as text that Markdown takes for nothing else."""
    letters = []
    for letter in said:
        # A bar would end the cell, and brackets or angles could make a link or HTML.
        harmless = letter.isalnum() or letter in " .,:;/-"
        letters.append(letter if harmless else f"&#{ord(letter)};")
    return "".join(letters)


def write_report(report: "SmokeReport", folder: Path) -> None:
    """Write the page, the plot as a picture and the data into a folder; say where the page is."""
    curves = _plotted(report)
    # A wheel that does not import has no curves, and still gets its page.
    if curves:
        files.write(folder / PLOT, plotting.growth(curves, *AXES, form="png"))
    values = {
        "report": report,
        "tally": tally(report),
        "summaries": {outcome.program: summary(outcome.program) for outcome in report.outcomes},
        "table": sizes(report.curves),
        "plot": plotting.growth(curves, *AXES, form="svg").decode() if curves else "",
        "data": DATA,
    }
    files.write(folder / DATA, report.dump())
    files.write(folder / PAGE, render.render("smoke.html.j2", values))
    text.tell(f"  {folder / PAGE}")


def _plotted(report: "SmokeReport") -> dict[str, list[tuple[float, float]]]:
    """Return the points of each curve: matrix size and GFLOP/s."""
    curves = {}
    for name, points in report.curves.items():
        curves[name] = [(float(point.size), point.gflops) for point in points]
    return curves


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
