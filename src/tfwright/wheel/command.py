"""The commands inspect and compare."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from invoke import Context

from tfwright.options import JSON, WHEEL, file_of, task
from tfwright.terminal.answer import Answer, Shown

if TYPE_CHECKING:
    from tfwright.wheel.inspect.leaks import HostDirectory


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
    from tfwright.wheel import page
    from tfwright.wheel.compare import comparison

    one = file_of(first, "compare")
    two = file_of(second, "compare")
    if diffoscope:
        # diffoscope has exit statuses of its own, which are passed on.
        sys.exit(comparison.run_diffoscope(one, two, as_json=json))
    found = comparison.compare(one, two)
    return Answer(
        found,
        page.show_comparison,
        lambda found: {"same": found.same, **vars(found)},
        # As cmp and diff do, for scripts.
        status=0 if found.same else 1,
    )


@task(
    help=JSON
    | WHEEL
    | {"key": "public key, in PEM, that must have signed the statement next to the wheel"}
)
def inspect(_: Context, wheel: str, key: str = "") -> Iterator[Shown]:
    """Show what a wheel needs and contains, from glibc to GPU code, and whether its tags are true.

    Nothing of the wheel is run.
    """
    from tfwright.wheel import page
    from tfwright.wheel.inspect import inspection

    file = file_of(wheel, "inspect")
    report = inspection.inspect(file, Path(key) if key else None, _directories)
    yield Answer(report, page.show_report)
    # Shown first, judged afterwards: what was found
    # helps most where a wheel is refused.
    inspection.insist(report)


def _directories() -> "Iterator[HostDirectory]":
    """Return the directories of this host that a wheel which was built here may name."""
    from tfwright.documents import host_file
    from tfwright.pipeline import leak_directories

    return leak_directories.of_host(host_file.read())
