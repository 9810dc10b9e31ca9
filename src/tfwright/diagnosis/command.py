"""The command diagnosis."""

import sys

from invoke import Context

from tfwright.options import JSON, explained, file_of, task


@task(
    positional=["log"],
    help=JSON
    | {
        "log": "a log of any stage, plain or packed with gzip; - for standard input",
        "learn": "make an entry for the catalogue of the root error, and a test fixture",
    },
)
def diagnose(_: Context, log: str, json: bool = False, learn: bool = False) -> None:
    """Find the root error in a log, its cause, and what helps.

    The exit status is 0 if the error is known.
    """
    with explained():
        from tfwright.diagnosis import learn as learning
        from tfwright.diagnosis import logs, page, report
        from tfwright.documents import host_file
        from tfwright.terminal import console

        found = logs.diagnose(str(file_of(log, "diagnose")), console.Terminal())
        reports = host_file.read().build_out / "reports"
        if learn:
            # For maintainers: the entry is written for the
            # catalogue, not for this reader.
            page.show_lesson(*learning.write(found, log, reports), as_json=json)
            return
        written = report.write(found, log, reports)
        page.show_diagnosis(found, written, as_json=json)
        # So that a script can tell known failures from new ones.
        sys.exit(0 if found.recognised else 1)
