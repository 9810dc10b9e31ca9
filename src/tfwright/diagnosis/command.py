"""The command diagnose."""

from functools import partial

from invoke import Context

from tfwright.options import JSON, file_of, task
from tfwright.terminal.answer import Answer, Shown


@task(
    positional=["log"],
    help=JSON
    | {
        "log": "a log of any stage, plain or packed with gzip; - for standard input",
        "learn": "make an entry for the catalogue of the root error, and a test fixture",
    },
)
def diagnose(_: Context, log: str, learn: bool = False) -> Shown:
    """Find the root error in a log, its cause, and what helps.

    The exit status is 0 if the error is known.
    """
    from tfwright.diagnosis import learn as learning
    from tfwright.diagnosis import page, reader
    from tfwright.documents import host_file
    from tfwright.terminal.console import Terminal

    found = reader.diagnose(str(file_of(log, "diagnose")), Terminal())
    reports = host_file.read().build_out / "reports"
    if learn:
        # For maintainers: the entry is written for the
        # catalogue, not for this reader.
        lesson, fixture = learning.write(found, log, reports)
        show = partial(page.show_lesson, fixture=fixture)
        return Answer(lesson, show, lambda lesson: {**vars(lesson), "path": fixture})
    shown = partial(page.show_diagnosis, report=learning.report(found, log, reports))
    # So that a script can tell known failures from new ones.
    return Answer(found, shown, page.diagnosis_data, status=0 if found.recognised else 1)
