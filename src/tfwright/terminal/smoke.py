"""The pages of smoke: a line for each program, a table of all runs, and an HTML report."""

import ast
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Style, Styled
from tfwright.tools import files, plotting, render

if TYPE_CHECKING:
    from tfwright.commands.smoke import SmokeReport
    from tfwright.trial.run import Point, TrialOutcome

PAGE, PLOT, DATA = "smoke.html", "sweep.png", "smoke.json"
COLOURS: dict[str, Style] = {
    "passed": text.GOOD,
    "skipped": text.WARNING,
    "failed": text.BAD,
}
AXES = ("rows and columns", "GFLOP/s")


def show_outcome(outcome: "TrialOutcome") -> None:
    """Print the outcome of one program as soon as it ends."""
    status = Styled(f"  {outcome.status:<8}", COLOURS.get(outcome.status, ""))
    lead = f"{outcome.program:<16}{outcome.seconds:6.1f} s  "
    text.line(status, lead, outcome.reason)
    sys.stdout.flush()


def show_report(report: "SmokeReport", *, as_json: bool) -> None:
    """Print everything for machines, and the totals for people, who saw each program's line."""
    if as_json:
        text.as_json(asdict(report))
    else:
        text.line(f"{report.wheel} on Python {report.python}: {tally(report)}")


def tally(report: "SmokeReport") -> str:
    """Count the outcomes, in words."""
    counts = Counter(outcome.status for outcome in report.outcomes)
    return ", ".join(
        f"{counts[status]} {status}" for status in ("passed", "skipped", "failed") if counts[status]
    )


def show_runs(reports: list["SmokeReport"]) -> None:
    """Print a Markdown table of the wheels that were tried on this machine, one row each."""
    print("| wheel | Python | result | within | CNN | A^10 + B^10 | matmul at best |")
    print("|---|---|---|---|---|---|---|")
    for report in sorted(reports, key=_by_project_and_version):
        by_name = {outcome.program: outcome for outcome in report.outcomes}
        bounds = ", ".join(f"`{line}`" for line in report.requirements) or "-"
        cells = [
            f"`{report.wheel}`",
            report.python,
            _result(report),
            bounds,
            *(_seconds(by_name.get(name)) for name in ("cnn", "powers")),
            _best(report),
        ]
        print(f"| {' | '.join(cells)} |")


def _by_project_and_version(report: "SmokeReport") -> tuple[str, list[int]]:
    project, version = report.wheel.split("-")[:2]
    return project, [_number(part) for part in version.split(".")]


def _number(part: str) -> int:
    return int(part) if part.isdigit() else -1


def _result(report: "SmokeReport") -> str:
    """Count, and say the first failure."""
    return "; ".join(
        [
            tally(report),
            *(f"{outcome.program}: {_plain(outcome.reason)}" for outcome in report.failures[:1]),
        ]
    )


def _seconds(outcome: "TrialOutcome | None") -> str:
    """Return the seconds on the CPU, and on the GPU where there are such."""
    numbers = outcome.numbers if outcome else {}
    shown = [
        f"{device.upper()} {value:.2f} s"
        for device in ("cpu", "gpu")
        if isinstance(value := numbers.get(f"{device}_seconds"), float)
    ]
    return ", ".join(shown) or "-"


def _best(report: "SmokeReport") -> str:
    """Return the highest point of each curve of the sweep."""
    return (
        ", ".join(
            f"{name} {max(point.gflops for point in points):.0f} GFLOP/s"
            for name, points in report.curves.items()
        )
        or "-"
    )


def _plain(said: str) -> str:
    """Return what a wheel said as text that Markdown takes for nothing else."""
    return "".join(
        letter if letter.isalnum() or letter in " .,:;/-" else f"&#{ord(letter)};"
        for letter in said
    )


def write_report(report: "SmokeReport", folder: Path) -> None:
    """Write the page, the plot as a picture and the data into a folder; say where the page is."""
    curves = {
        name: [(float(point.size), point.gflops) for point in points]
        for name, points in report.curves.items()
    }
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


def summary(program: str) -> str:
    """Return the first line of a program's docstring; nothing for what is no program."""
    from tfwright.trial.run import PROGRAMS  # noqa: PLC0415 only a page needs it

    path = PROGRAMS / f"{program}.py"
    return (
        (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
        if path.is_file()
        else ""
    )


def sizes(curves: "dict[str, list[Point]]") -> list[tuple[int, dict[str, "Point"]]]:
    """Return the points of all curves by size, for a table beside the plot."""
    found = sorted({point.size for points in curves.values() for point in points})
    return [
        (
            size,
            {
                name: point
                for name, points in curves.items()
                for point in points
                if point.size == size
            },
        )
        for size in found
    ]
