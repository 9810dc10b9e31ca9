"""The catalogue of failures: the line that people saw, why, and what helps."""

import re
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from tfwright.documents.names import Line
from tfwright.documents.toml import Table, load

FILE = Path(__file__).with_name("catalogue.toml")

Retry = Literal["no", "pass", "once", "fewer", "later", "info"]
"""Whether trying again helps: something must change first; it may pass; it may, but not if the same comes twice; with fewer
jobs; not now; it is harmless."""
Fact = Literal["disk", "memory", "glibc", "xcode", "driver"]
"""What can be looked at on this host."""

_SLOW = re.compile(r"(?<!\\)[*+]|\{\d+,\}|\)\{|\{\d*,?\d{4,}\}")
"""Repetition without an end, of a group, or a thousand times and more."""
_CLASS = re.compile(r"\[(?:\\.|[^\]\\])+\]")
_START = re.compile(r"\^|\\?[^\\\[(.]|\\[\[(\])]")


def _linear(pattern: str) -> str:
    """Refuse a pattern that could take more than linear time, or that begins with no literal."""
    if _SLOW.search(_CLASS.sub("[]", pattern)):
        message = "every repetition needs an upper bound below 1000, and none may be of a group"
        raise ValueError(message)
    if not _START.match(pattern):
        message = "a pattern begins with a literal or with ^"
        raise ValueError(message)
    try:
        re.compile(pattern.encode())
    except re.error as fault:
        message = f"not a regular expression: {fault}"
        raise ValueError(message) from fault
    return pattern


class Clue:
    """A pattern on the bytes of a log, taken apart into the literal that it begins with and the rest."""

    def __init__(self, pattern: str) -> None:
        """Read `pattern`; ``^`` is the end of the line before."""
        encoded = (r"\n" + pattern[1:] if pattern.startswith("^") else pattern).encode()
        width = 2 if encoded.startswith(b"\\") else 1
        # ": " and "] " begin most of them: with both bytes in the literal, a search skips what cannot match.
        width += encoded[:width] in {b":", rb"\]"} and encoded[width : width + 1] == b" "
        self.literal, self.rest = encoded[:width], encoded[width:]
        self.regex = re.compile(encoded)


class Entry(Table):
    """One failure; the catalogue's head describes the keys."""

    id: Line
    stage: Literal["configure", "fetch", "source", "compile", "package", "verify", "any"]
    retry: Retry
    pattern: Annotated[str, AfterValidator(_linear)]
    sample: Line
    cause: Line
    remedy: Line
    sources: tuple[Line, ...]
    also: tuple[Line, ...] = ()
    evidence: tuple[Fact, ...] = ()

    @cached_property
    def clue(self) -> Clue:
        """What to look for."""
        return Clue(self.pattern)

    @property
    def links(self) -> tuple[str, ...]:
        """The sources, as a browser takes them where they are threads on GitHub."""
        return tuple(
            re.sub(r"^([\w.-]+/[\w.-]+)#(\d+)$", r"https://github.com/\1/issues/\2", source)
            for source in self.sources
        )

    def matches(self, line: str) -> bool:
        """Say whether one line of a log shows this failure."""
        return bool(self.clue.regex.search(f"\n{line}\n".encode()))


class Catalogue(Table):
    """All failures."""

    failure: tuple[Entry, ...]


@lru_cache
def everything() -> tuple[Entry, ...]:
    """Return the whole catalogue."""
    return load(FILE, Catalogue).failure
