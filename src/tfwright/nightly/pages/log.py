"""A log as HTML: a line for each line, with its number as an anchor, coloured by what it says.

A log is hostile: its text is escaped, and control characters are shown as blanks. Secrets, tokens
and paths that name a person are taken out of everything that strangers may read.
"""

import gzip
import re
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tfwright.tools.redaction import ANSI, redact_lines

SHOWN = 200_000
"""Bytes of a log that a page shows; the whole is linked."""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
BIDI = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f]")
"""Marks that make a line read otherwise than it is."""
KINDS = (
    ("error", re.compile(r"(?i)\b(error|fatal|undefined reference|cannot find|failed)\b")),
    ("warning", re.compile(r"(?i)\bwarning\b")),
    ("note", re.compile(r"^(INFO|DEBUG|\s*note):?", re.IGNORECASE)),
)
BEFORE = 400
"""Lines before the line of interest that are shown."""
LONGEST = 2000
"""Characters of a line that are shown."""
LONGEST_RAW = 8 * LONGEST
"""Characters of a line that are read; control characters may take most of them."""


@dataclass(frozen=True)
class LogLine:
    """One line as the page shows it; the template escapes its text."""

    number: int
    text: str
    kind: str


@dataclass(frozen=True)
class ShownLog:
    """The part of a log that a page shows."""

    name: str
    lines: tuple[LogLine, ...]
    left_out: int
    """Lines before the first one that is shown, or after the last."""
    size: int


def read(folder: Path, name: str, around: int = 0) -> ShownLog:
    """Return a log's end, or the part around a line of interest."""
    path = folder / name
    # A long one is kept packed, and is named without that.
    packed = path.with_name(f"{path.name}.gz")
    if packed.is_file() and not path.is_file():
        path = packed
    size = path.stat().st_size if path.is_file() else 0
    kept: deque[tuple[int, str]] = deque()
    total = budget = 0
    for total, text in enumerate(_raw_lines(path), 1):
        # Once the page is full behind the line of interest, the rest is only counted.
        if around and total > around and budget > SHOWN:
            continue
        kept.append((total, text))
        budget += len(text)
        # The first lines make room for later ones.
        while kept and (
            kept[0][0] < around - BEFORE if around and total >= around else budget > SHOWN
        ):
            budget -= len(kept.popleft()[1])
    # Only now: to make a line harmless costs far more than to count it, and a log of a
    # TensorFlow has a million of them.
    lines = []
    texts = redact_lines(_without_controls(text) for _, text in kept)
    for (number, _), text in zip(kept, texts, strict=True):
        # Cut last: the beginning of a token is not known for one.
        shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
        kind = next((kind for kind, pattern in KINDS if pattern.search(shown)), "")
        lines.append(LogLine(number, shown, kind))
    return ShownLog(str(path.relative_to(folder)), tuple(lines), total - len(kept), size)


def _raw_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a log as they are, each up to a length that a page can use."""
    if not path.is_file():
        return
    opened = gzip.open if path.suffix == ".gz" else open
    # A packed log that was cut off is shown as far as it goes.
    with (
        suppress(EOFError, gzip.BadGzipFile, zlib.error),
        opened(path, "rt", encoding="utf-8", errors="replace", newline="\n") as stream,
    ):
        for line in stream:
            plain = line.rstrip("\r\n")
            # A progress bar rewrites its line: only what it said last counts.
            yield plain.rpartition("\r")[2][:LONGEST_RAW]


def _without_controls(text: str) -> str:
    """Return one line without what a terminal obeys."""
    return BIDI.sub("", CONTROL.sub(" ", ANSI.sub("", text)))
