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


def _any_of(rests: list[bytes]) -> bytes:
    """Return one pattern for any of `rests`; what begins with the same letter is tried only where that letter stands."""
    letters = sorted(rest for rest in rests if rest[:1].isalpha())
    others = [rest for rest in rests if not rest[:1].isalpha()]
    nested = [letter + b"(?:" + b"|".join(rest[1:] for rest in group) + b")" for letter, group in groupby(letters, lambda rest: rest[:1])]
    return b"(?:" + b"|".join([*nested, *others]) + b")"
