"""Directories of the machine that built a wheel, which the wheel's files name."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath

from tfwright.printable import listed
from tfwright.wheel.binary.elf_image import Content

_OUTSIDE = rb"(?:(?<![\w.+@~-]/)|(?<=-[A-Z]/))"
"""Where a path begins, as seen from behind its first slash: also in an option such as -I/home."""
_END = rb"(?![\w+@~-]|\.\w)"
"""Where a name ends: /build_out is not in /build_out2."""
_REST = re.compile(rb"[\w.+@/-]{0,512}", re.ASCII)
SHOWN = 3
"""Files that a note names; the others are counted."""
MOST = 100_000
"""Paths that are looked at; a file full of them would take for ever."""
LEAST_PARTS, LEAST = 2, 6
"""Names and bytes that a directory has at least: a shorter one could be in any file by chance."""


@dataclass(frozen=True)
class HostDirectory:
    """A directory that a build on this host uses, and that another host has elsewhere."""

    path: str
    what: str
    """What it is: ``the CUDA toolkit``."""
    remedy: str
    """How its path is kept out of a wheel."""


@dataclass(frozen=True)
class Leak:
    """Paths of one directory that a file of a wheel names."""

    file: str
    directory: str
    path: str
    """One of the paths."""


class LeakSearch:
    """What the files of a wheel are searched for."""

    def __init__(self, directories: Iterable[HostDirectory] = ()) -> None:
        """Look for directories."""
        known: dict[str, HostDirectory] = {}
        for directory in directories:
            # A shorter one could be in any file by chance; the root is one of the parts.
            parts = PurePath(directory.path).parts
            if len(parts) > LEAST_PARTS and len(directory.path) >= LEAST:
                known.setdefault(directory.path, directory)
        # The longest first: it says most about a path.
        self._known = sorted(known.values(), key=lambda found: len(found.path), reverse=True)
        # All begin with the same byte, so that one pass finds them as fast as one of them.
        own = b"|".join(re.escape(os.fsencode(found.path[1:])) for found in self._known)
        self._pattern = re.compile(rb"/" + _OUTSIDE + rb"(?:" + own + rb")" + _END) if own else None

    def leaks(self, file: str, content: Content) -> Iterator[Leak]:
        """Search a file; yield one leak for each directory."""
        found: dict[str, str] = {}
        marks = self._pattern.finditer(content) if self._pattern else iter(())
        for mark in islice(marks, MOST):
            rest = _REST.match(content, mark.end())
            path = mark[0] + (rest[0] if rest else b"")
            found.setdefault(os.fsdecode(mark[0]), os.fsdecode(path))
        for directory, path in found.items():
            yield Leak(file, directory, path)

    def notes(self, leaks: Sequence[Leak]) -> Iterator[str]:
        """Say what leaks mean, once for all files of which the same is to be said."""
        for known in self._known:
            here = [leak for leak in leaks if leak.directory == known.path]
            if here:
                files = [leak.file for leak in here]
                path = here[0].path
                such = f", such as {path}" if path != known.path else ""
                named = f"{len(files)} files ({listed(files, SHOWN)}) name"
                if len(files) == 1:
                    named = f"{files[0]} names"
                yield (
                    f"{named} {known.path}, {known.what} of this host{such}. Users have "
                    "no such directory, and a build on another host gives other bytes. "
                    f"{known.remedy}"
                )
