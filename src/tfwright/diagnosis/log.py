"""Reads a log of any size once, from a file, from gzip or a pipe, and keeps what matters of it.

What failed is said near words such as ``error:``, or at the end. So the beginning and the end of a
log are kept, and whatever surrounds those words; the rest, which is most of a long log, is only
searched for them, at the speed at which memory is read.

Terminals add colours, build services add times, containers add names. A complaint is recognised by
what the tool wrote; people are shown the line without control characters.
"""

import codecs
import gzip
import os
import re
import sys
import time
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, NamedTuple, Protocol, TypeVar

from tfwright.diagnosis.families import rule
from tfwright.errors import RecipeError
from tfwright.progress import Listener, Progress

PIECE = 1 << 16
"""Bytes that are read and judged at once."""
EDGE = 32
"""Pieces at the beginning, and as many at the end, that are kept whatever they hold."""
MIDDLE = 64
"""Pieces between them that are kept at most."""
MOST_LINES = 2000
"""Lines of one piece that are kept; of more, the first and the last half."""
WORDS = (b"error:", b"error in ", b"failed", b"fatal ")
"""What the lines around a failure hold, in lower case."""
WIDEST = 4096
"""Characters of one line that are read; what comes later in the line is not looked at."""
SHOWN = 600
"""Characters of one line that are shown."""
SHOWN_OF_ROOT = 960
"""Characters of the root line: old versions of Bazel put a whole chain of causes into one line."""
MOST_OVERWRITTEN = 50
"""Texts that a progress bar wrote over each other, of one line of the file."""
MOST_PREFIXES = 3
BINARY = 8192
"""Bytes at the beginning that show whether it is text."""
LONG = 64 << 20
"""Bytes from which on progress is reported."""

_MARKS = (b"\x1b", b"\x08", b"\r", b"[31m", b"[1m", b"[0m", b"[0;", b"[1;")
"""What lines hold that a terminal would not show as text."""
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|[]_][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[()][AB0]|.)"
)
_BARE_COLOUR = re.compile(r"\[(?:\d{1,2}(?:;\d{1,2}){0,4})?m(?=\S)")
"""A colour whose escape character was lost when somebody copied the text."""
_OVERSTRUCK = re.compile(r".\x08")
_MARKED = {
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8-sig",
}
"""Encodings that a file names in its first bytes."""
Item = TypeVar("Item")


class LogStream(Protocol):
    """Anything that bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""

    def readline(self, size: int, /) -> bytes:
        """Return the rest of the line, up to `size` bytes."""


@dataclass(frozen=True)
class Line:
    """A line of the log that was kept."""

    number: int
    """From 1, as an editor counts."""
    text: str
    """Without colours."""

    @cached_property
    def message(self) -> str:
        """What the tool said: the line without the prefixes of build services."""
        return message_of(self.text)


@dataclass(frozen=True)
class Log:
    """What was kept of a log."""

    lines: Sequence[Line]
    """In the order of the log; lines between two of them may be missing."""
    count: int
    """How many lines the whole log has."""


class Piece(NamedTuple):
    """Some whole lines of a log; of a line longer than a piece, only the beginning is kept."""

    number: int
    """Which piece of the log it is, from 0."""
    line: int
    """Number of its first line, from 1."""
    data: bytes


def read(stream: LogStream) -> Log:
    """Read a log to its end. Memory stays bounded whatever it holds."""
    kept: list[Piece] = []
    edge: deque[Piece] = deque(maxlen=EDGE)
    left, wanted, count = MIDDLE, 0, 0
    for piece in _pieces(stream):
        count = piece.line + piece.data.count(b"\n") - 1
        if piece.number < EDGE:
            kept.append(piece)
            continue
        before = edge[-1] if edge else None
        edge.append(piece)
        complains = left > 0 and any(word in piece.data.lower() for word in WORDS)
        if complains and before and before.number > kept[-1].number:
            kept.append(before)
            left -= 1
        # One piece more than the one that complains: what a failed action printed comes after.
        wanted = 2 if complains else max(0, wanted - 1)
        if wanted and left > 0 and piece.number > kept[-1].number:
            kept.append(piece)
            left -= 1
    last = kept[-1].number if kept else -1
    pieces = [*kept, *(piece for piece in edge if piece.number > last)]
    return Log([line for piece in pieces for line in _split_lines(piece)], count)


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


def _split_lines(piece: Piece) -> Iterator[Line]:
    """Return the lines of a piece; what a progress bar wrote over itself becomes lines, too."""
    rows = piece.data.removesuffix(b"\n").split(b"\n")
    plain = piece.data.isascii() and not any(mark in piece.data for mark in _MARKS)
    for offset in both_ends(range(len(rows)), MOST_LINES):
        number, row = piece.line + offset, rows[offset]
        if plain and len(row) < WIDEST:
            yield Line(number, row.decode("ascii"))
            continue
        parts = row.rstrip(b"\r").rsplit(b"\r", MOST_OVERWRITTEN)
        if len(parts) > MOST_OVERWRITTEN:
            del parts[0]
        *overwritten, last = map(decode, parts)
        yield from (Line(number, text) for text in overwritten if text)
        yield Line(number, last)


def both_ends(items: Sequence[Item], most: int) -> Sequence[Item]:
    """Return at most that many of some items: the first and the last ones."""
    if len(items) <= most:
        return items
    return [*items[: most // 2], *items[-most // 2 :]]


def decode(line: bytes) -> str:
    """Return one line as text of bounded length, without colours and control sequences."""
    text = line[:WIDEST].decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\x08" in text:
        text = _OVERSTRUCK.sub("", text)
    if text.find("m", 0, 400) >= 0 and "[" in text[:8]:
        text = _BARE_COLOUR.sub("", text, count=8)
    return text.rstrip("\r\n")


def message_of(text: str) -> str:
    """Return what the tool said: a line without the prefixes of build services."""
    for _ in range(MOST_PREFIXES):
        prefix = rule("prefix").match(text)
        if not prefix:
            break
        text = text[prefix.end() :]
    return f"ERROR: {text.lstrip()}" if rule("lost_mark").match(text) else text


def shorten(text: str, most: int = SHOWN) -> str:
    """Return a line as it can be shown: of at most that many characters, and printable."""
    short = text[:most]
    # Asked of the whole first: most lines are printable, and a log has many.
    if not short.isprintable():
        short = "".join(each if each.isprintable() or each == "\t" else "?" for each in short)
    return short + (" …" if len(text) > most else "")


def indent(text: str) -> int:
    """Return how far a line is indented, in columns; a tab counts as eight."""
    wide = text[:200].expandtabs()
    return len(wide) - len(wide.lstrip())


@contextmanager
def open_log(name: str, listener: Listener) -> Iterator[LogStream]:
    """Open a log, plain or packed; ``-`` is standard input.

    It reports how far it was read, once that takes a while. Raises RecipeError if it cannot be
    read.
    """
    try:
        with nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb") as raw:
            watched = _WatchedLog(name, raw, listener)
            yield watched
            watched.report_end()
    except (OSError, EOFError, zlib.error) as fault:
        why = getattr(fault, "strerror", None) or fault
        remedy = "Name a log, plain or packed with gzip, or - for standard input."
        if re.match(r"https?:/", name):
            remedy = "Download it: curl -L ADDRESS | invoke diagnose -"
        raise RecipeError(f"{name} cannot be read: {why}", remedy=remedy) from fault


def _is_binary(data: bytes) -> bool:
    """Say whether bytes are no text. Old logs have other encodings, and cut ones begin with NUL."""
    try:
        # The last character may be cut.
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return b"\0" in data
    return False


class _WatchedLog:
    """A log that reports how far it was read, once that takes a while."""

    def __init__(self, name: str, raw: IO[bytes], listener: Listener) -> None:
        self.name = name
        self.raw = raw
        self.listener = listener
        start = raw.peek(3)[:3] if hasattr(raw, "peek") else b""
        self.text: LogStream = raw
        if start.startswith(b"\x1f\x8b"):
            self.text = gzip.GzipFile(fileobj=raw)
        # What PowerShell's > writes, and what editors of Windows put before UTF-8.
        elif marked := next((mark for mark in _MARKED if start.startswith(mark)), None):
            self.text = codecs.EncodedFile(raw, "utf-8", _MARKED[marked], "replace")
        self.size = os.fstat(raw.fileno()).st_size if raw.seekable() else None
        self.done, self.begun = 0, time.monotonic()

    def read(self, size: int, /) -> bytes:
        data = self.text.read(size)
        if not self.done and _is_binary(data[:BINARY]):
            raise OSError("it is not a text file")
        return self._count(data)

    def readline(self, size: int, /) -> bytes:
        return self._count(self.text.readline(size))

    def _count(self, data: bytes) -> bytes:
        if self.done <= LONG < self.done + len(data):
            self.listener.started("diagnose", self.name)
        self.done += len(data)
        if self.done > LONG:
            # Of a packed log only the packed size is known, so that is what is counted.
            self.listener.progress(
                Progress(self.raw.tell() if self.size is not None else self.done, self.size, "B")
            )
        return data

    def report_end(self) -> None:
        if self.done > LONG:
            self.listener.finished("diagnose", time.monotonic() - self.begun)
