"""Texts in a library that tell how it was made: the builder's directories, NCCL's version."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tfwright.wheel.binary.content import Content

_MARK = re.compile(rb"/(?:home/|Users/|root/|_bazel_|execroot/|bazel-out/)")
"""What a path on a build machine begins with or holds.

All begin with the same byte, so that one pass finds them in a fifth of the time of six passes.
"""
ANONYMOUS = "/proc/self/cwd/"
"""What Bazel can be made to write in their stead."""
_BEFORE, _AFTER = (
    re.compile(rb"[\w.+@/-]*\Z", re.ASCII),
    re.compile(rb"[\w.+@/-]*", re.ASCII),
)
_NCCL = b"NCCL version "
"""What NCCL says at its start, before its version."""
_VERSION = re.compile(
    rb"(\d[\w.]{0,30}?(?:\+cuda\d[\d.]{0,20})?)(?:\+cudaCUDA_MAJOR\.CUDA_MINOR)?[^\w.+]"
)
"""The version; Bazel compiles NCCL without the macros that would say its CUDA."""
LONGEST = 512
"""Bytes of a path that are looked at, on each side of its mark."""
SHOWN = 3
MOST = 100_000
"""Paths that are looked at; a file full of them would take for ever."""


@dataclass(frozen=True)
class Text:
    """What was found in a library."""

    leaks: int = 0
    """How often a path of the machine that built it is in it."""
    paths: tuple[str, ...] = ()
    """Some of these paths."""
    nccl: str = ""
    """The version of the NCCL that is linked into it, with its CUDA if it says that."""


def search(content: Content) -> Text:
    """Search a whole file."""
    leaks, paths = 0, dict[str, None]()
    for path in _paths(content):
        leaks += 1
        if len(paths) < SHOWN:
            paths[path] = None
    return Text(leaks, tuple(paths), _nccl(content))


def _nccl(content: Content) -> str:
    """Return the version of the NCCL in a library; empty where there is none."""
    place = content.find(_NCCL)
    # A text of the same beginning may come first, in a message with a placeholder.
    for _ in range(MOST):
        if place < 0:
            break
        if version := _VERSION.match(content, place + len(_NCCL)):
            return version[1].decode()
        place = content.find(_NCCL, place + 1)
    return ""


def _paths(content: Content) -> Iterator[str]:
    """Return the absolute paths with a mark, each once where it has several."""
    last = -1
    for number, mark in enumerate(_MARK.finditer(content)):
        if number == MOST:
            return
        # A pattern that looks back from each mark would be quadratic in a file full of
        # them.
        window = bytes(content[max(mark.start() - LONGEST, 0) : mark.start()])
        before = _BEFORE.search(window)
        start = mark.start() - len(before[0] if before else b"")
        # /home/user/.cache/bazel/_bazel_user/... has two marks.
        if start == last:
            continue
        last = start
        found = _AFTER.match(content, start, start + LONGEST)
        path = found[0].decode("ascii") if found else ""
        # Two slashes begin the rest of a URL: https://host/home/page.
        if path.startswith("/") and not path.startswith(("//", ANONYMOUS)):
            yield path
