"""Reads a log of any size once, and keeps the parts that are worth reading closely.

What failed is said near words such as ``error:``, or at the end. So the beginning and the end of a
log are kept, and whatever surrounds those words; the rest, which is most of a long log, is only
searched for them, at the speed at which memory is read.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

PIECE = 1 << 16
"""Bytes that are read and judged at once."""
EDGE = 32
"""Pieces at the beginning, and as many at the end, that are kept whatever they hold."""
MIDDLE = 64
"""Pieces between them that are kept at most."""
WORDS = (b"error:", b"error in ", b"failed", b"fatal ")
"""What the lines around a failure hold, in lower case."""


class LogStream(Protocol):
    """Anything that bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""

    def readline(self, size: int, /) -> bytes:
        """Return the rest of the line, up to `size` bytes."""


@dataclass(frozen=True)
class Piece:
    """Some whole lines of a log; of a line longer than a piece, only the beginning is kept."""

    number: int
    """Which piece of the log it is, from 0."""
    line: int
    """Number of its first line, from 1."""
    data: bytes


@dataclass(frozen=True)
class Sketch:
    """What was kept of a log."""

    pieces: tuple[Piece, ...]
    """In the order of the log; pieces between two of them may be missing."""
    lines: int
    """How many lines the whole log has."""


def read(stream: LogStream) -> Sketch:
    """Read a log to its end. Memory stays bounded whatever it holds."""
    kept: list[Piece] = []
    edge: deque[Piece] = deque(maxlen=EDGE)
    room = MIDDLE
    wanted = 0
    lines = 0
    for piece in _pieces(stream):
        lines = piece.line + piece.data.count(b"\n") - 1
        if piece.number < EDGE:
            kept.append(piece)
            continue
        before = edge[-1] if edge else None
        edge.append(piece)
        complains = room > 0 and _complains(piece.data)
        if complains and before and before.number > kept[-1].number:
            kept.append(before)
            room -= 1
        # One piece more than the one that complains: what a failed action printed comes after.
        wanted = 2 if complains else max(0, wanted - 1)
        if wanted and room > 0 and piece.number > kept[-1].number:
            kept.append(piece)
            room -= 1
    last = kept[-1].number if kept else -1
    return Sketch((*kept, *(piece for piece in edge if piece.number > last)), lines)


def _complains(data: bytes) -> bool:
    """Say whether a piece holds a word that failures use."""
    plain = data.lower()
    return any(word in plain for word in WORDS)


def _pieces(stream: LogStream) -> Iterator[Piece]:
    """Yield a log in whole lines; the rest of a line that fills more than a piece is left out."""
    line = 1
    number = 0
    broken = False
    while data := stream.read(PIECE):
        if not data.endswith(b"\n"):
            data += stream.readline(PIECE)
        ends = data.endswith(b"\n")
        if broken:
            data = data[data.find(b"\n") + 1 :] if b"\n" in data else b""
            line += bool(data) or ends
        broken = not ends
        if not data:
            continue
        yield Piece(number, line, data if ends else data + b"\n")
        number += 1
        line += data.count(b"\n")
