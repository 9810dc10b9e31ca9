"""Directories of the machine that built a wheel, which the wheel's files name."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from tfwright.printable import first_of, listed
from tfwright.wheel.binary.elf_image import Content

_GUESSED = rb"home/|Users/|root/|_bazel_|execroot/|bazel-out/"
"""What a path on a build machine begins with or holds, behind a slash."""
_OUTSIDE = rb"(?:(?<![\w.+@~-]/)|(?<=-[A-Z]/))"
"""Where a path begins, as seen from behind its first slash: also in an option such as -I/home."""
_END = rb"(?![\w+@~-]|\.\w)"
"""Where a name ends: /build_out is not in /build_out2."""
ANONYMOUS = "/proc/self/cwd/"
"""What Bazel can be made to write in their stead."""
_BEFORE, _AFTER = (re.compile(rb"[\w.+@/-]*\Z", re.ASCII), re.compile(rb"[\w.+@/-]*", re.ASCII))
LONGEST = 512
"""Bytes of a path that are looked at, on each side of its mark."""
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
    """The directory of this host; empty where the path only looks like one of a build machine."""
    times: int
    path: str
    """One of the paths."""


class LeakSearch:
    """What the files of a wheel are searched for."""

    def __init__(self, directories: Iterable[HostDirectory] = (), *, guess: bool = False) -> None:
        """Look for directories; in libraries also for what looks like one, if asked to `guess`."""
        known: dict[str, HostDirectory] = {}
        for directory in directories:
            # A shorter one could be in any file by chance; the root is one of the parts.
            parts = PurePath(directory.path).parts
            if len(parts) > LEAST_PARTS and len(directory.path) >= LEAST:
                known.setdefault(directory.path, directory)
        # The longest first: it says most about a path.
        self._known = sorted(known.values(), key=lambda found: len(found.path), reverse=True)
        own = [re.escape(os.fsencode(found.path[1:])) for found in self._known]
        self._in_texts = _pattern(own, b"")
        # Not in texts, where documentation has examples such as /home/user.
        self._in_libraries = _pattern(own, _GUESSED if guess else b"")

    def leaks(self, file: str, content: Content, *, library: bool) -> Iterator[Leak]:
        """Search a file; yield one leak for each directory, and one for all guesses."""
        found = defaultdict[str, list[str]](list)
        pattern = self._in_libraries if library else self._in_texts
        for directory, path in _paths(content, pattern) if pattern else ():
            found[directory].append(path)
        for directory, paths in found.items():
            yield Leak(file, directory, len(paths), paths[0])

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
        alike = defaultdict[str, list[str]](list)
        for leak in leaks:
            if not leak.directory:
                alike[f"{leak.times} times, such as {leak.path}"].append(leak.file)
        for example, files in alike.items():
            yield f"{first_of(files)}: names paths as on a machine that builds, {example}"


def _pattern(own: Sequence[bytes], guessed: bytes) -> re.Pattern[bytes] | None:
    """Return one expression for directories and guesses; None without any.

    All begin with the same byte, so that one pass finds them in a fifth of the time of six passes.
    """
    known = _OUTSIDE + rb"(?P<own>" + b"|".join(own) + rb")" + _END
    marks = [mark for mark in (known if own else b"", guessed) if mark]
    return re.compile(rb"/(?:" + b"|".join(marks) + rb")") if marks else None


def _paths(content: Content, pattern: re.Pattern[bytes]) -> Iterator[tuple[str, str]]:
    """Yield directory and path; a path with several marks once."""
    last = -1
    for number, mark in enumerate(pattern.finditer(content)):
        if number == MOST:
            return
        if mark.lastgroup:
            last = mark.start()
            directory = mark[0]
            yield (
                os.fsdecode(directory),
                os.fsdecode(directory + _rest_of_path(content, mark.end())),
            )
            continue
        # A pattern that looks back from each mark would be quadratic in a file full of them.
        window = bytes(content[max(mark.start() - LONGEST, 0) : mark.start()])
        before = _BEFORE.search(window)
        start = mark.start() - len(before[0] if before else b"")
        # /home/user/.cache/bazel/_bazel_user/... has two marks.
        if start == last:
            continue
        last = start
        path = _rest_of_path(content, start).decode("ascii")
        # Two slashes begin the rest of a URL: https://host/home/page.
        if path.startswith("/") and not path.startswith(("//", ANONYMOUS)):
            yield "", path


def _rest_of_path(content: Content, start: int) -> bytes:
    """Return the rest of a path."""
    found = _AFTER.match(content, start, start + LONGEST)
    return found[0] if found else b""
