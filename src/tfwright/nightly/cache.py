"""Space from the build cache: what was used longest ago goes first."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

YOUNG_SECONDS = 600
"""What was used within this time may belong to a build that runs, and stays."""


class CachedFile(NamedTuple):
    """A file of the cache."""

    used: float
    """When it was last used, in seconds since 1970: the cache sets the time of modification."""
    size: int
    path: str


def size(folder: Path) -> int:
    """Return the bytes of a cache."""
    return sum(file.size for file in _files(str(folder)))


def trim(folder: Path, limit: int) -> int:
    """Remove the files that were used longest ago, until `limit` bytes are left; return the rest.

    An entry and its blobs are separate files. The cache takes a missing one for a miss, so that any
    of them may go, but what was used just now belongs to a build that runs.
    """
    # A tuple sorts by its first field, the time of use.
    found = sorted(_files(str(folder)))
    total = sum(file.size for file in found)
    young = time.time() - YOUNG_SECONDS
    for file in found:
        if total <= limit or file.used > young:
            break
        Path(file.path).unlink(missing_ok=True)
        total -= file.size
    return total


def _files(folder: str) -> Iterator[CachedFile]:
    """Yield all files below a folder."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
            elif entry.is_file(follow_symlinks=False):
                state = entry.stat(follow_symlinks=False)
                yield CachedFile(state.st_mtime, state.st_size, entry.path)
        # A build that runs at the same time replaces files.
        except FileNotFoundError:
            continue
