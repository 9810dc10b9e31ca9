"""Bazel's disk cache within a limit: what was used longest ago goes first."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class CachedFile(NamedTuple):
    """A file of the cache."""

    used: float
    """When it was last read or written, in seconds since 1970."""
    size: int
    path: str


def size(folder: Path) -> int:
    """Return the bytes of a cache."""
    return sum(file.size for file in _files(str(folder)))


def trim(folder: Path, limit: int) -> int:
    """Remove the files that were used longest ago, until `limit` bytes are left; return the rest.

    An entry and its blobs are separate files. Bazel asks again for what is missing, so that any of
    them may go.
    """
    found = sorted(_files(str(folder)))
    total = sum(file.size for file in found)
    for file in found:
        if total <= limit:
            break
        Path(file.path).unlink(missing_ok=True)
        total -= file.size
    return total


def _files(folder: str) -> Iterator[CachedFile]:
    """Yield the files of a cache, which old Bazels keep flat and new ones in folders."""
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
                # Many file systems note no access; a write is then the last use that is known.
                used = max(state.st_atime, state.st_mtime)
                yield CachedFile(used, state.st_size, entry.path)
        except FileNotFoundError:
            continue
