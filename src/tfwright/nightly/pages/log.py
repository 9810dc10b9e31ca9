"""A log as HTML: a line for each line, with its number as an anchor, coloured by what it says.

A log is hostile: its text is escaped, and control characters are shown as blanks.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tfwright.nightly.pages.redaction import redacted

SHOWN = 200_000
"""Bytes of a log that a page shows; the whole is linked."""
CONTROL = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
BIDI = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f]")
"""Marks that make a line read otherwise than it is."""
KINDS = (
    (
        "error",
        re.compile(r"(?i)\b(error|fatal|undefined reference|cannot find|failed)\b"),
    ),
    ("warning", re.compile(r"(?i)\bwarning\b")),
    ("note", re.compile(r"^(INFO|DEBUG|\s*note):?", re.IGNORECASE)),
)
BEFORE = 400
"""Lines before the line of interest that are shown."""
LONGEST = 2000
"""Characters of a line that are shown."""


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
    size = path.stat().st_size if path.is_file() else 0
    kept: deque[LogLine] = deque()
    total = budget = 0
    for total, text in enumerate(_lines(path), 1):
        # Once the page is full behind the line of interest, the rest is only counted.
        if around and total > around and budget > SHOWN:
            continue
        kept.append(LogLine(total, text, _kind(text)))
        budget += len(text)
        while kept and _too_early(kept[0].number, budget, around, total):
            budget -= len(kept.popleft().text)
    return ShownLog(name, tuple(kept), total - len(kept), size)


def _too_early(number: int, budget: int, around: int, last: int) -> bool:
    """Say whether the first line that is kept makes room for later ones."""
    if around and last >= around:
        return number < around - BEFORE
    return budget > SHOWN


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a log, made harmless."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace", newline="\n") as stream:
        for line in stream:
            yield clean(line.rstrip("\r\n"))


def clean(text: str) -> str:
    """Return one line without control characters, secrets and home paths."""
    # A progress bar rewrites its line: only what it said last counts.
    last = text.rpartition("\r")[2]
    plain = BIDI.sub("", CONTROL.sub(" ", last))
    shortened = plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}…"
    return redacted(shortened)


def _kind(text: str) -> str:
    return next((kind for kind, pattern in KINDS if pattern.search(text)), "")
