"""A directory for recipes of one's own, as an installed tfwright needs it."""

from dataclasses import dataclass
from pathlib import Path

from tfwright.documents.filesystem import HOST_FILE
from tfwright.tools import files

HOST = """\
# The settings of this host; every key is optional, and docs/host.md describes all of them.
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
class Made:
    """The directory, and what in it did not exist before."""

    directory: Path
    written: tuple[Path, ...]


def make(directory: str) -> Made:
    """Make recipes/, patches/ and a host file in a directory; leave alone what exists."""
    place = Path(directory).absolute()
    wanted = [place / name for name in ("recipes", "patches", HOST_FILE)]
    absent = tuple(path for path in wanted if not path.exists())
    for folder in wanted[:2]:
        folder.mkdir(parents=True, exist_ok=True)
    if wanted[2] in absent:
        files.write(wanted[2], HOST)
    return Made(place, absent)
