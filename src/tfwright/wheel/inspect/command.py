"""The command inspect."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from invoke import Context

from tfwright.options import JSON, WHEEL, file_of, task
from tfwright.terminal.answer import Answer, Shown

if TYPE_CHECKING:
    from tfwright.wheel.inspect.leaks import HostDirectory


@task(
    help=JSON
    | WHEEL
    | {"key": "public key, in PEM, that must have signed the statement next to the wheel"}
)
def inspect(_: Context, wheel: str, key: str = "") -> Iterator[Shown]:
    """Show what a wheel needs and contains, from glibc to GPU code, and whether its tags are true.

    Nothing of the wheel is run.
    """
    from tfwright.wheel.inspect import inspection, page

    file = file_of(wheel, "inspect")
    report = inspection.inspect(file, Path(key) if key else None, _directories)
    yield Answer(report, page.show_report)
    # Shown first, judged afterwards: what was found
    # helps most where a wheel is refused.
    inspection.insist(report)


def _directories() -> "Iterator[HostDirectory]":
    """Return the directories of this host that a wheel which was built here may name."""
    from tfwright.documents import host_file
    from tfwright.pipeline import host_directories

    return host_directories.of_host(host_file.read())
