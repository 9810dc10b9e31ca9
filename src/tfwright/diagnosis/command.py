"""The command diagnose."""

from functools import partial

from invoke import Context

from tfwright.options import JSON, required_file, task
from tfwright.terminal.answer import Answer, Shown


@task(
    positional=["log"],
    help=JSON | {"log": "a log of any stage, plain or packed with gzip; - for standard input"},
)
def diagnose(_: Context, log: str) -> Shown:
    """Find the root error in a log, its cause, and the remedy.

    The exit status is 0 if the error is known.
    """
    from tfwright.diagnosis import page, reader
    from tfwright.documents import host_file
    from tfwright.terminal.console import Terminal

    found = reader.diagnose(str(required_file(log, "diagnose")), Terminal())
    reports = host_file.read().build_out / "reports"
    shown = partial(page.show_diagnosis, report=page.write_report(found, log, reports))
    # So that a script can tell known failures from new ones.
    return Answer(found, shown, page.diagnosis_data, status=0 if found.recognised else 1)
