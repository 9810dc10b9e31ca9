"""The commands inspect and compare."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from invoke import Context

from tfwright.options import JSON, MACHINE, check_exclusive, required_file, task
from tfwright.terminal.answer import Answer, Shown

if TYPE_CHECKING:
    from tfwright.wheel.inspect.leaks import HostDirectory


@task(
    positional=["first", "second"],
    help=JSON | {"first": "path of a .whl file", "second": "path of another one"},
)
def compare(_: Context, first: str, second: str) -> Shown:
    """Compare two wheels: files, metadata, code, source, and how they are packed.

    The exit status is 0 if they are the same bytes.
    """
    from tfwright.wheel import page
    from tfwright.wheel.compare import comparison

    found = comparison.compare(required_file(first, "compare"), required_file(second, "compare"))
    return Answer(
        found,
        page.show_comparison,
        lambda found: {"same": found.same, **vars(found)},
        # As cmp and diff do, for scripts.
        status=0 if found.same else 1,
    )


@task(
    help=JSON
    | {"wheel": "path or URL of a .whl file, of any TensorFlow"}
    | MACHINE
    | {
        "key": "public key, in PEM, that must have signed the statement next to the wheel",
        "here": "first say whether it runs on this host",
    }
)
def inspect(
    _: Context, wheel: str, machine: Mapping[str, str], key: str = "", here: bool = False
) -> Iterator[Shown]:
    """Show what a wheel needs and contains, from glibc to GPU code, and whether its tags are true.

    Nothing of the wheel is run. With --here, or with options that describe a machine, a verdict
    comes first, and the exit status is 3 if the wheel does not run there.
    """
    from tfwright.terminal import console
    from tfwright.wheel import page
    from tfwright.wheel.inspect import inspection

    with _file(wheel) as file, console.working(f"inspecting {file.name}"):
        report = inspection.inspect(file, Path(key) if key else None, _directories)
    if here or any(machine.values()):
        from tfwright.documents import host_file
        from tfwright.errors import HostError
        from tfwright.host import probes
        from tfwright.match import fit
        from tfwright.match import page as match_page
        from tfwright.match import wish as wishes

        check_exclusive(here=here, host=machine["host"])
        host = probes.this_host()
        wanted = wishes.wish_of_options(machine, host)
        if here:
            wanted = wishes.wish_of_wheels(wanted, host)
        verdict = fit.verdict(report, wanted, host if here else None, host_file.read())
        show = partial(match_page.show_verdict, then=page.show_report)
        data = match_page.verdict_data
        status = HostError.exit_status if verdict.runs is False else 0
        yield Answer((verdict, report), show, data, status)
        # Who asks about one machine hears of a tag that promises too much, and is not refused.
        if set(report.faults) == set(report.broken_promises):
            return
    else:
        yield Answer(report, page.show_report)
    # Shown first, judged afterwards: what was found helps most where a wheel is refused.
    inspection.check_sound(report)


@contextmanager
def _file(wheel: str) -> Iterator[Path]:
    """Give the path of a wheel; one with a url is downloaded, and removed afterwards."""
    from tfwright.tools import files
    from tfwright.tools.http import client, downloads

    if not client.is_web_url(wheel):
        yield required_file(wheel, "inspect")
        return
    # The name decides the tags; a page of an index adds the checksum behind a #.
    name = PurePosixPath(unquote(urlsplit(wheel).path)).name
    with files.scratch_directory() as folder:
        file = folder / (name or "wheel")
        downloads.download(wheel.partition("#")[0], file)
        yield file


def _directories() -> "Iterator[HostDirectory]":
    """Return the directories of this host that a wheel which was built here may name."""
    from tfwright.documents import host_file
    from tfwright.pipeline import leak_directories

    return leak_directories.host_directories(host_file.read())
