"""Finds the first root error of a log, and what the catalogue says about it.

The last line of a log names what failed to follow; the first complaint is what it followed from. A log
is read once, in pieces, in linear time, from a file, from gzip or from a pipe.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from tfwright.diagnosis import excerpt
from tfwright.diagnosis.catalogue import Clue, Entry, everything
from tfwright.diagnosis.excerpt import Excerpt
from tfwright.diagnosis.watch import Watch

_PIECE = 1 << 18
_BEFORE, _AFTER, _LINE = 16 << 10, 64 << 10, 4 << 10
"""Bytes kept around an error, and of one line."""

_COMPLAINTS = (
    *(
        "^ERROR: ",
        "^FATAL: ",
        "^fatal: ",
        "^error: ",
        "^dyld: ",
        "^ld: ",
        "^FAILED: ",
        "^CMake Error",
        "^Invalid ",
        "^Aborted",
        "^nvcc fatal",
    ),
    *(
        "^ImportError: ",
        "^ModuleNotFoundError: ",
        "^OSError: ",
        "^RuntimeError: ",
        "^AttributeError: ",
    ),
    *(
        ": error: ",
        ": fatal error: ",
        ": Error: ",
        ": undefined reference to ",
        ": internal compiler error",
        ": command not found",
    ),
    *(
        r"\] Check failed: ",
        r": line \d{1,5}: {1,3}\d{1,9} (?:Aborted|Segmentation fault|Illegal instruction|Killed|Bus error)",
    ),
    *(r"^Traceback \(most recent call last\):", r"^(?:make|make\[\d\]): \*\*\* "),
)
"""What an error looks like that the catalogue does not know."""
_REMARK = re.compile(rb"WARNING|INFO|DEBUG|warning: |note: ")
"""Lines that begin like this are no errors, whatever they quote."""
_QUOTING = re.compile(rb"[^\n]{1,400}?: (?:warning|note): ")
"""A compiler's warning may quote what looks like an error."""
_ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class Readable(Protocol):
    """Anything that bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""

    def readline(self, size: int, /) -> bytes:
        """Return the rest of the line, up to `size` bytes."""


@dataclass(frozen=True)
class Match:
    """A failure of the catalogue that a line of the log shows."""

    entry: Entry
    line: int
    text: str
    explains: bool
    """Whether it stands at the first error."""


@dataclass(frozen=True)
class Diagnosis:
    """What a log says."""

    first: Excerpt | None
    """The first error; None if nothing complains."""
    matches: tuple[Match, ...]
    """What the catalogue knows of it, the likeliest first."""
    harmless: tuple[Match, ...]
    """Lines that look bad and mean nothing."""
    lines: int
    """How many were read."""

    @property
    def recognised(self) -> bool:
        """Whether anything is known."""
        return bool(self.matches or self.harmless)


def read(stream: Readable) -> Diagnosis:
    """Read a log to its end."""
    reader = _Reader()
    for before, piece, after in _windows(stream):
        reader.look(before, piece, after)
    return reader.conclude()


class _Reader:
    """What was found so far."""

    def __init__(self) -> None:
        """Look for every entry, and for what any error looks like."""
        self.entries = everything()
        self.watch = Watch([*(entry.clue for entry in self.entries), *map(Clue, _COMPLAINTS)])
        self.seen: dict[int, tuple[int, str]] = {}
        self.first: Excerpt | None = None
        self.lines = 0

    def look(self, before: bytes, piece: bytes, after: bytes) -> None:
        """Look through whole lines, which the end of a line stands before; `before` and `after` are what surrounds them."""
        for at, number in self.watch.hits(piece):
            known = number < len(self.entries)
            harmless = known and self.entries[number].retry == "info"
            place = at + (piece[at] == ord("\n"))
            line = _line(piece, place)
            if number in self.seen or (not harmless and _means_nothing(line, known=known)):
                continue
            if known:
                self.seen[number] = (self.lines + piece.count(b"\n", 0, place), _text(line))
                self.watch.found({number})
            if self.first is None and not harmless:
                self.first = self._excerpt(before, piece, place, after)
                self.watch.found(
                    set(range(len(self.entries), len(self.entries) + len(_COMPLAINTS)))
                )
        self.lines += piece.count(b"\n") - 1

    def conclude(self) -> Diagnosis:
        """Rank what was found: what stands at the first error comes first, then in the order of the log."""
        matches = [self._match(number) for number in self.seen]
        matches.sort(key=lambda match: (not match.explains, match.line))
        return Diagnosis(
            self.first,
            tuple(match for match in matches if match.entry.retry != "info"),
            tuple(match for match in matches if match.entry.retry == "info"),
            self.lines,
        )

    def _match(self, number: int) -> Match:
        line, text = self.seen[number]
        explains = self.first is not None and self.first.line <= line <= self.first.last
        return Match(self.entries[number], line, text, explains)

    def _excerpt(self, before: bytes, piece: bytes, place: int, after: bytes) -> Excerpt:
        """Take the lines around `place` out of what is at hand."""
        start = piece.rfind(b"\n", 0, place) + 1
        above = (before + piece[1:start])[-_BEFORE:].split(b"\n")[:-1]
        below = (
            piece[start : start + _AFTER] + after[: max(0, _AFTER - len(piece) + start)]
        ).split(b"\n")
        number = self.lines + piece.count(b"\n", 0, start)
        return excerpt.around([_text(line) for line in (*above, *below)], len(above), number)


def _means_nothing(line: bytes, *, known: bool) -> bool:
    """Say whether a line is a remark; one that a compiler makes may still be in the catalogue."""
    return bool(_REMARK.match(line) or (not known and _QUOTING.match(line)))


def _windows(stream: Readable) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield the pieces of a log, each with the end of the one before and the beginning of the next."""
    before = piece = b""
    for after in chain(_pieces(stream), [b""]):
        if piece:
            yield before[-_BEFORE:], piece, after[1:_AFTER]
        before, piece = piece, after


def _pieces(stream: Readable) -> Iterator[bytes]:
    """Yield a log in whole lines, with a line's end before the first; a line longer than a piece is cut."""
    while read := stream.read(_PIECE):
        piece = b"".join((b"\n", read, b"" if read.endswith(b"\n") else stream.readline(_PIECE)))
        yield _plain(piece if piece.endswith(b"\n") else piece + b"\n")


def _plain(data: bytes) -> bytes:
    """Take out colours; what a bar wrote over itself becomes lines."""
    if b"\x1b" in data:
        data = _ESCAPE.sub(b"", data)
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def _line(data: bytes, place: int) -> bytes:
    """Return the line that `place` is in, or a few thousand bytes of it."""
    start = max(data.rfind(b"\n", max(0, place - _LINE), place) + 1, place - _LINE)
    end = data.find(b"\n", place, place + _LINE)
    return data[start : end if end >= 0 else place + _LINE]


def _text(line: bytes) -> str:
    return line[: 4 * _LINE].decode("utf-8", "replace")
