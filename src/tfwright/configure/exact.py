"""Versions of TensorFlow down to the patch level and the fork, where ./configure differs by them."""

import re
from typing import NamedTuple, Self

from tfwright.documents.release import Release

_PATTERN = re.compile(r"[rv]?(\d+)\.(\d+)(?:\.(\d+))?[^+]*(?:\+([\w.]+))?")
LAST_PATCH = 999
"""Higher than any patch level; ends a range that covers a whole release line."""


class ExactRelease(NamedTuple):
    """A version such as ``2.4.4`` or ``1.15.5+nv22.12``, ordered by its numbers."""

    major: int
    minor: int
    patch: int = 0
    fork: str = ""
    """What follows the plus sign: ``nv22.12`` for a branch of NVIDIA's."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a version, or a tag or branch named after one: ``v2.4.4``, ``r1.15.5+nv22.12``.

        A version without a patch level is the first of its line. Raises ValueError for other texts.
        """
        found = _PATTERN.match(text)
        if not found:
            message = f"{text!r} is not a TensorFlow version such as '2.4.4' or '1.15.5+nv22.12'"
            raise ValueError(message)
        return cls(int(found[1]), int(found[2]), int(found[3] or 0), found[4] or "")

    @property
    def line(self) -> Release:
        """The release line, by which most rules go."""
        return Release(self.major, self.minor)

    @property
    def numbers(self) -> tuple[int, int, int]:
        """Major, minor and patch level, for comparing without the fork."""
        return self.major, self.minor, self.patch

    def __str__(self) -> str:
        fork = f"+{self.fork}" if self.fork else ""
        return f"{self.major}.{self.minor}.{self.patch}{fork}"


def first_of(text: str) -> tuple[int, int, int]:
    """Return where a range begins: ``2.4`` means 2.4.0."""
    return ExactRelease.parse(text).numbers


def last_of(text: str) -> tuple[int, int, int]:
    """Return where a range ends: ``2.4`` means all of 2.4, ``2.4.0`` that version alone."""
    version = ExactRelease.parse(text)
    whole_line = text.count(".") == 1
    return version.numbers if not whole_line else (version.major, version.minor, LAST_PATCH)
