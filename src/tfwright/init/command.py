"""The command init: a directory for recipes of one's own, as an installed tfwright needs it."""

import os
from dataclasses import dataclass
from pathlib import Path

from invoke import Context

from tfwright.documents.filesystem import HOST_FILE, unbuildable_character
from tfwright.errors import HostError
from tfwright.options import JSON, task
from tfwright.printable import as_started, shell_word
from tfwright.terminal import text
from tfwright.terminal.answer import Answer, Shown

HOST = """\
# The settings of this host; every key is optional. All of them are described in
# docs/host.md
# build_out = "/scratch/tfwright"  # for builds and wheels; by default build_out/ in this directory
# jobs = 8                         # actions that Bazel runs at once
# drop = "/home/me/Downloads"      # files that you downloaded by hand; found by checksum
#
# [mirrors]  # git repositories
# "https://github.com/{owner}/{name}.git" = "/mirrors/{owner}/{name}"
#
# [pythons]  # target Pythons that tfwright does not find itself
# "3.6" = "/opt/python3.6/bin/python3.6"
"""


@dataclass(frozen=True)
class CreatedDirectory:
    """The directory, and what in it did not exist before."""

    directory: Path
    written: tuple[Path, ...]


@task(positional=["directory"], help={"directory": "path; by default the working directory"} | JSON)
def init(_: Context, directory: str = ".") -> Shown:
    """Create a directory for your own recipes: recipes/, patches/ and a host file.

    What exists already stays as it is. In this directory and below it, tfwright uses these recipes
    and this host file, and builds into its build_out/.
    """
    return Answer(create_directory(directory), show)


def create_directory(directory: str) -> CreatedDirectory:
    """Make recipes/, patches/ and a host file in a directory; leave alone what exists.

    Raises HostError where they cannot be created.
    """
    from tfwright.tools import files

    place = Path(directory).absolute()
    wanted = [place / name for name in ("recipes", "patches", HOST_FILE)]
    absent = tuple(path for path in wanted if not path.exists())
    try:
        for folder in wanted[:2]:
            folder.mkdir(parents=True, exist_ok=True)
        if wanted[2] in absent:
            files.write(wanted[2], as_started(HOST))
    except OSError as fault:
        raise HostError(
            f"{fault.filename} cannot be created: {fault.strerror}",
            remedy="Name a directory in which you may create files.",
        ) from fault
    return CreatedDirectory(place, absent)


def show(created: CreatedDirectory) -> None:
    """Show what was made, and what comes next."""
    text.line(f"{created.directory} is ready")
    for path in created.written:
        text.line(f"  {path.relative_to(created.directory)}", text.detail("  made"))
    if odd := unbuildable_character(created.directory):
        note = f"no build runs below a path with {odd!r}: set build_out in {HOST_FILE}"
        text.paragraph(text.warning("note: "), note, indent=6)
    elsewhere = created.directory != Path.cwd()
    enter = [f"cd {shell_word(os.path.relpath(created.directory))}"] if elsewhere else []
    text.next_commands(
        *enter, "invoke recipes", "invoke new --like demo --name mine", "invoke build --recipe mine"
    )
