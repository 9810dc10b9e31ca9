"""A difference between two wheels, and how bytes are compared."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tfwright.printable import first_few
from tfwright.wheel.binary.elf_image import Content

SHOWN = 5
"""How many of a kind are named; the others are counted."""
CHUNK = 1024 * 1024


@dataclass(frozen=True)
class Difference:
    """One thing in which two wheels differ."""

    group: str
    """One of `comparison.GROUPS`."""
    member: str
    """The file, by the place where it is installed; empty for what concerns many."""
    what: str
    lines: tuple[str, ...] = ()
    """What shows it."""


class Apart(NamedTuple):
    """How two stretches of bytes differ."""

    bytes: int
    """How many differ, as far as both reach."""
    first: int
    """Where the first one is; where both are the same until one ends, its end."""
    starts: tuple[int, ...]
    """Where the first few runs of them start."""


class Readable(Protocol):
    """Something whose bytes come a piece at a time: a stream, or a `Cursor`."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most `size`; none at the end."""


class Cursor:
    """The bytes of a file from a place on."""

    def __init__(self, content: Content, place: int = 0) -> None:
        """Begin at a place."""
        self._content, self._place = content, place

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        part = bytes(self._content[self._place : self._place + size])
        self._place += len(part)
        return part


def tell_apart(one: Readable, two: Readable, size: int) -> Apart | None:
    """Compare the next `size` bytes of two streams in pieces; None if they are the same."""
    count, starts, place = 0, list[int](), 0
    while place < size:
        wanted = min(CHUNK, size - place)
        first, second = one.read(wanted), two.read(wanted)
        # A damaged archive may end before its directory says.
        if not first or not second:
            break
        if first != second:
            # Only now byte by byte: comparing whole pieces runs at the speed of memory.
            apart = _exclusive(first, second)
            count += len(apart) - apart.count(0)
            if len(starts) < SHOWN:
                starts += [place + run.start() for run in re.finditer(rb"[^\0]+", apart)]
        place += len(first)
    return Apart(count, starts[0], tuple(starts[:SHOWN])) if count else None


def _exclusive(one: bytes, two: bytes) -> bytes:
    """Return a byte other than 0 wherever two pieces differ, as far as both reach."""
    size = min(len(one), len(two))
    # As two large integers: a loop in Python would take minutes for a library.
    return (int.from_bytes(one[:size]) ^ int.from_bytes(two[:size])).to_bytes(size)


def sample(names: Iterable[str]) -> tuple[str, ...]:
    """Return the first few, and how many more there are."""
    return first_few(list(names), SHOWN)


def only(one: set[str], two: set[str], what: str) -> Iterator[str]:
    """Say what is in one set and not in the other, with the first few of each."""
    for side, there in (("first", one - two), ("second", two - one)):
        if there:
            names = ", ".join(sample(sorted(there)))
            yield f"{what} only in the {side} ({len(there):,}): {names}"
