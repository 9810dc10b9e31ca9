"""Looking for many patterns in many bytes, at the speed at which memory is read.

Python's `re` tries the alternatives of a pattern one by one at every byte, unless the pattern begins
with a literal: then it skips to the next place where that stands. So patterns are put together by the
literal that they begin with, and each group is searched for on its own.
"""

import heapq
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from tfwright.diagnosis.catalogue import Clue

Hit = tuple[int, int]
"""Where a clue stands, and the clue's number."""


class Watch:
    """Watches for clues until they are found."""

    def __init__(self, clues: Sequence[Clue]) -> None:
        """Watch for all `clues`."""
        self._clues = clues
        self._wanted = set(range(len(clues)))
        self._groups = self._arranged()

    def found(self, numbers: set[int]) -> None:
        """Look no longer for these clues."""
        if numbers & self._wanted:
            self._wanted -= numbers
            self._groups = self._arranged()

    def hits(self, data: bytes) -> Iterator[Hit]:
        """Yield where clues stand in `data`, in order."""
        return heapq.merge(*(self._search(pattern, numbers, data) for pattern, numbers in self._groups))

    def _arranged(self) -> list[tuple[re.Pattern[bytes], list[int]]]:
        """Put the wanted clues together by their literals."""
        literals = sorted((self._clues[number].literal, number) for number in self._wanted)
        groups = ((literal, [number for _, number in group]) for literal, group in groupby(literals, itemgetter(0)))
        return [(re.compile(literal + _any_of([self._clues[number].rest for number in numbers])), numbers) for literal, numbers in groups]

    def _search(self, pattern: re.Pattern[bytes], numbers: list[int], data: bytes) -> Iterator[Hit]:
        """Yield the hits of one group; clues may overlap."""
        found = pattern.search(data)
        while found:
            at = found.start()
            yield from ((at, number) for number in numbers if self._clues[number].regex.match(data, at))
            found = pattern.search(data, at + 1)


_CHOICE = re.compile(rb"\(\?:((?:[^()\\]|\\.)*)\)(\??)(?![{])")
"""A group of plain alternatives at the beginning of a pattern."""
_LETTER = re.compile(rb"(?:[^\\\[\](){}.?*+^$|]|\\[^\w\s])(?![{?])")
"""A byte that stands for itself."""


def _any_of(rests: Sequence[bytes]) -> bytes:
    """Return one pattern for any of `rests`, as a tree: what begins alike is tried only where that stands."""
    branches: dict[bytes, list[bytes]] = {}
    for rest in rests:
        for plain in _spread(rest):
            letter = _LETTER.match(plain)
            branches.setdefault(letter[0] if letter else b"", []).append(plain)
    told = [letter + _any_of([rest[len(letter) :] for rest in same]) if letter and len(same) > 1 else b"|".join(same) for letter, same in branches.items()]
    return b"(?:" + b"|".join(told) + b")"


def _spread(rest: bytes) -> Iterator[bytes]:
    """Yield a pattern that begins with a choice once for each alternative."""
    choice = _CHOICE.match(rest)
    if not choice:
        yield rest
        return
    for start in [*choice[1].split(b"|"), *([b""] if choice[2] else [])]:
        yield start + rest[choice.end() :]
