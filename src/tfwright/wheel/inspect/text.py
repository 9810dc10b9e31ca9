"""Texts in a library that tell how it was made: the builder's directories, NCCL's version."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

MARKS = (b"/home/", b"/Users/", b"/root/", b"/_bazel_", b"/execroot/", b"/bazel-out/")
"""What a path on a build machine begins with or holds. Searched for one by one, which is ten times as fast as one pattern."""
ANONYMOUS = "/proc/self/cwd/"
"""What Bazel can be told to write in their stead."""
_BEFORE, _AFTER = re.compile(rb"[\w.+@/-]*\Z", re.ASCII), re.compile(rb"[\w.+@/-]*", re.ASCII)
_NCCL = re.compile(
    rb"NCCL version (\d[\w.]*?(?:\+cuda\d[\d.]*)?)(?:\+cudaCUDA_MAJOR\.CUDA_MINOR)?[^\w.+]"
)
"""What NCCL says at its start; Bazel compiles it without the macros that would say its CUDA."""
LONGEST = 512
"""Bytes of a path that are looked at."""
SHOWN = 3
_WINDOW = 8 * 1024**2


@dataclass(frozen=True)
class Text:
    """What was found in a library."""

    leaks: int = 0
    """How often a path of the machine that built it is in it."""
    paths: tuple[str, ...] = ()
    """Some of these paths."""
    nccl: str = ""
    """The version of the NCCL that is linked into it, with its CUDA if it says that."""


def search(stream: IO[bytes]) -> Text:
    """Search a whole file, a window at a time."""
    leaks, paths, nccl = 0, dict[str, None](), ""
    for content, whole in _windows(stream):
        found = _paths(content, len(content) if whole else len(content) - LONGEST)
        leaks += len(found)
        paths.update(dict.fromkeys(found[: SHOWN - len(paths)] if len(paths) < SHOWN else ()))
        version = None if nccl else _NCCL.search(content)
        nccl = version[1].decode() if version else nccl
    return Text(leaks, tuple(paths), nccl)


def _windows(stream: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Return the file in windows that overlap by the longest text, and whether each is the last one."""
    stream.seek(0)
    content = stream.read(_WINDOW)
    while further := stream.read(_WINDOW):
        yield content, False
        content = content[-LONGEST:] + further
    yield content, True


def _paths(content: bytes, end: int) -> list[str]:
    """Return the absolute paths with a mark that start before `end`."""
    starts = {_start(content, place) for mark in MARKS for place in _places(content, mark)}
    paths = (
        _AFTER.match(content, start, start + LONGEST) for start in sorted(starts) if start < end
    )
    found = [path[0].decode("ascii") for path in paths if path]
    return [
        path for path in found if path.startswith("/") and not path.startswith(("//", ANONYMOUS))
    ]


def _places(content: bytes, mark: bytes) -> Iterator[int]:
    """Return where a mark stands."""
    place = content.find(mark)
    while place >= 0:
        yield place
        place = content.find(mark, place + 1)


def _start(content: bytes, place: int) -> int:
    """Return where the path starts that has a mark at `place`."""
    before = _BEFORE.search(content, max(place - LONGEST, 0), place)
    return before.start() if before else place
