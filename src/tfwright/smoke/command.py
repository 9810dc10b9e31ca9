"""The command smoke."""

from collections.abc import Iterator
from pathlib import Path

from invoke import Context

from tfwright.options import JSON, WHEEL, required_file, task
from tfwright.terminal.answer import Answer, Shown


@task(
    positional=["wheel"],
    iterable=["requirement"],
    help=JSON
    | WHEEL
    | {
        "python": "target Python, as 3.6 or as a path; default: what the wheel's tag says",
        "requirement": 'installed with it, as "numpy<1.17"; may be given again',
        "module": "what to import; default: the wheel's only package, else tensorflow",
        "report": "folder for a page with the plot, and the data",
    },
)
def smoke(
    _: Context,
    requirement: list[str],
    wheel: str = "",
    python: str = "",
    module: str = "",
    report: str = "",
    json: bool = False,
) -> Iterator[Shown]:
    """Install a wheel in a fresh venv and test it with small programs, on the CPU and on GPUs."""
    from tfwright.documents import host_file
    from tfwright.smoke import page, smoking
    from tfwright.terminal import console
    from tfwright.tools import files

    file = required_file(wheel, "smoke")
    module = module or smoking.module_of(file)
    request = smoking.Request(file, host_file.read(), python, requirement, module)
    if report:
        files.check_writable(f"--report {report}", Path(report))
    # Standard output must hold nothing but the JSON.
    with console.working(f"testing {file.name}"):
        seen = smoking.smoke(request, (lambda _: None) if json else page.show_outcome)
    yield Answer(seen, page.show_report)
    if report:
        page.write_report(seen, Path(report))
    # Last: the report is written also of a wheel that fails.
    smoking.check_passed(request, seen)
