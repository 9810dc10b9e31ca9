"""Looking for many patterns in many bytes, at the speed at which memory is read.

Hyperscan says, for all patterns in one pass, which ones a piece of a log may hold: mostly none. Where it
says that there are some, or is not there, Python looks for itself.

Python's `re` tries the alternatives of a pattern one by one at every byte, unless the pattern begins
with a literal: then it skips to the next place where that stands. So patterns are put together by the
literal that they begin with, and each group is searched for on its own.
"""

import functools
import heapq
import re
from collections.abc import Callable, Iterator, Sequence

from tfwright.diagnosis.catalogue import Clue

Hit = tuple[int, int]
"""Where a clue stands, and the clue's number."""


class Watch:
    """Watches for clues until they are found."""

    def __init__(self, clues: Sequence[Clue]) -> None:
        """Watch for all `clues`."""
        self._clues = clues
        self._wanted: dict[bytes, list[int]] = {}
        for number, clue in enumerate(clues):
            self._wanted.setdefault(clue.literal, []).append(number)
        self._patterns = {literal: self._together(literal) for literal in self._wanted}
        self._sieve = _sieve(tuple(clue.regex.pattern for clue in clues))
        self._found: set[int] = set()

    def found(self, numbers: set[int]) -> None:
        """Look no longer for these clues, from here on."""
        self._found |= numbers
        for literal, wanted in self._wanted.items():
            if numbers.intersection(wanted):
                self._wanted[literal] = [number for number in wanted if number not in numbers]
                self._patterns[literal] = self._together(literal)

    def hits(self, data: bytes) -> Iterator[Hit]:
        """Yield where clues stand in `data`, in order; they may overlap."""
        if self._sieve and self._sieve(data) <= self._found:
            return iter(())
        return heapq.merge(*(self._search(literal, data) for literal in self._wanted))

    def _together(self, literal: bytes) -> re.Pattern[bytes] | None:
        """Return one pattern for all wanted clues that begin with `literal`; None if none is wanted."""
        rests = [self._clues[number].rest for number in self._wanted[literal]]
        return re.compile(literal + _any_of(rests)) if rests else None

    def _search(self, literal: bytes, data: bytes) -> Iterator[Hit]:
        """Yield the hits of the clues that begin with `literal`."""
        at = -1
        while (pattern := self._patterns[literal]) and (hit := pattern.search(data, at + 1)):
            at = hit.start()
            yield from [
                (at, number)
                for number in self._wanted[literal]
                if self._clues[number].regex.match(data, at)
            ]


Sieve = Callable[[bytes], set[int]]
"""Says which patterns may match somewhere in some bytes; the others do not."""
_BEHIND = re.compile(rb"\(\?<=(?:\\.|[^)\\])*\)")
"""What Hyperscan does not know; a pattern without it matches more."""


@functools.cache
def _sieve(patterns: tuple[bytes, ...]) -> Sieve | None:
    """Return the sieve for some patterns; None where there is no Hyperscan, as on a Linux with another processor than Intel's."""
    try:
        import hyperscan  # noqa: PLC0415 it is not there on every machine
    except ImportError:
        return None
    database = hyperscan.Database()
    flags = [hyperscan.HS_FLAG_SINGLEMATCH] * len(patterns)
    database.compile(
        [_BEHIND.sub(b"", pattern) for pattern in patterns],
        ids=range(len(patterns)),
        elements=len(patterns),
        flags=flags,
    )

    def sieve(data: bytes) -> set[int]:
        found: set[int] = set()
        database.scan(data, match_event_handler=lambda number, *_: found.add(number))
        return found

    return sieve


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
    told = [
        letter + _any_of([rest[len(letter) :] for rest in same])
        if letter and len(same) > 1
        else b"|".join(same)
        for letter, same in branches.items()
    ]
    return b"(?:" + b"|".join(told) + b")"


def _spread(rest: bytes) -> Iterator[bytes]:
    """Yield a pattern that begins with a choice once for each alternative."""
    choice = _CHOICE.match(rest)
    if not choice:
        yield rest
        return
    for start in [*choice[1].split(b"|"), *([b""] if choice[2] else [])]:
        yield start + rest[choice.end() :]
