"""The command compare."""

import sys

from invoke import Context

from tfwright.options import JSON, file_of, task
from tfwright.terminal.answer import Answer, Shown


@task(
    positional=["first", "second"],
    help=JSON
    | {
        "first": "path of a .whl file",
        "second": "path of another one",
        "diffoscope": "let diffoscope tell more, if it is installed",
    },
)
def compare(
    _: Context, first: str, second: str, json: bool = False, diffoscope: bool = False
) -> Shown:
    """Compare two wheels: files, metadata, code, source, and how they are packed.

    The exit status is 0 if they are the same bytes.
    """
    from tfwright.tools import diffoscope as other
    from tfwright.wheel.compare import comparison, page

    one = file_of(first, "compare")
    two = file_of(second, "compare")
    if diffoscope:
        # diffoscope has exit statuses of its own, which are passed on.
        sys.exit(other.show(one, two, as_json=json))
    found = comparison.compare(one, two)
    return Answer(
        found,
        page.show_comparison,
        lambda found: {"same": found.same, **vars(found)},
        # As cmp and diff do, for scripts.
        status=0 if found.same else 1,
    )
