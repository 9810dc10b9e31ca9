"""Whether a hunk of a patch fits a file: where, how far from its old place, and if not, why."""

import difflib
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from typing import Literal

AROUND = 2
"""Lines of the tree that are shown before and after the place where a hunk belongs."""
CLOSE = 0.5
"""Share of a hunk's lines that a place must have to count as the hunk's own, only changed."""

SLACK = 4
"""Lines that upstream may have put into a hunk's place."""
NEAR = 8
"""Lines around a change in which the line that it replaces would still be."""
ALIKE = 0.75
"""Likeness from which a line counts as another spelling of the patch's."""
SHORTEST_ALIKE = 12
"""Characters of a line that can be recognised in another spelling."""
MOST_COMPARED = 400
"""Lines of a hunk that is compared with a file that it does not fit; difflib takes cubic time."""
LONGEST_COMPARED = 2_000
"""Characters of one of these lines."""

FaultKind = Literal[
    "fits",
    "moved",
    "done",
    "reformatted",
    "ends",
    "fuzz",
    "changed",
    "missing",
    "too long",
    "exists",
    "no file",
    "gone",
]
"""``done``: the change is in the file already. ``reformatted``: it seems to be, in other words.
``ends``: only the ends of the lines differ.
``fuzz``: the place is there, and only lines around the change differ. ``changed``: the place is
there, and the lines to change differ too. ``missing``: nothing like it is there.
``too long``: it does not fit, and was not compared.
``exists``: the patch creates a file that is there. ``no file``: it changes one that is not.
``gone``: it removes one that is not."""


@dataclass(frozen=True)
class Fit:
    """How one hunk fits a file."""

    verdict: FaultKind
    line: int
    """Where the hunk belongs in the file as it is now, from 1."""
    differing: tuple[tuple[str, str], ...] = ()
    """Where the place has other lines: what the patch expects, and what the file has."""
    shown: tuple[str, ...] = ()
    """The file's lines there, numbered."""

    @property
    def good(self) -> bool:
        """Whether the hunk can be put in."""
        return self.verdict in {"fits", "moved"}


@dataclass(frozen=True)
class Hunk:
    """One place in a file; lines keep their ends."""

    start: int
    """The line, from 1, where it was before the patch."""
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def removed(self) -> list[str]:
        """The lines that the patch takes away."""
        return [row[2:] for row in difflib.ndiff(self.before, self.after) if row.startswith("- ")]

    @property
    def added(self) -> list[str]:
        """The lines that the patch brings."""
        return [row[2:] for row in difflib.ndiff(self.before, self.after) if row.startswith("+ ")]

    def fit(self, lines: Sequence[str]) -> Fit:
        """Return how the hunk fits a file's lines; by content only, never by line numbers alone."""
        if not self.before:
            # It makes a whole file.
            done: FaultKind = "done" if tuple(lines) == self.after else "exists"
            return Fit(done if lines else "fits", 1)
        if not lines:
            return Fit("no file" if self.after else "gone", self.start)
        at = self._nearest_place(lines, self.before)
        if at is not None:
            return Fit("fits" if at + 1 == self.start else "moved", at + 1)
        return self._find_misfit(lines)

    def _find_misfit(self, lines: Sequence[str]) -> Fit:
        """Say why the hunk does not fit lines that are not empty."""
        both = (*self.before, *self.after)
        if len(both) > MOST_COMPARED or max(map(len, both)) > LONGEST_COMPARED:
            return Fit("too long", self.start)
        # The lines may end otherwise: in CRLF, or, the last one, in nothing.
        plain = [line.rstrip("\r\n") for line in lines]
        at = self._nearest_place(plain, [line.rstrip("\r\n") for line in self.before])
        if at is not None:
            # Quoted, since an end of a line cannot be seen.
            pairs = zip(self.before, lines[at:], strict=False)
            differing = [(repr(was), repr(now)) for was, now in pairs if was != now]
            return Fit("ends", at + 1, tuple(differing))
        at = self._nearest_place(lines, self.after) if self.after else None
        if at is not None and not self._is_still_in(lines):
            return Fit("done", at + 1, shown=_numbered_lines(lines, at, len(self.after)))
        at = self._find_reformatted(lines)
        if at is not None:
            return Fit("reformatted", at + 1, shown=_numbered_lines(lines, at, len(self.added)))
        return self._closest_fit(lines)

    def _nearest_place(self, lines: Sequence[str], block: Sequence[str]) -> int | None:
        """Return the index of a block of lines that is next to the old place, as git takes it."""
        return min(places(lines, block), key=lambda at: abs(at + 1 - self.start), default=None)

    def _is_still_in(self, lines: Sequence[str]) -> bool:
        """Tell whether a line that the patch removes is still in the file.

        Neighbours of a removed line can come together for another reason: the line moved.
        """
        present = {line.strip() for line in lines}
        # A line that is both removed and added only changes its place.
        added = {line.strip() for line in self.added}
        removed = {line.strip() for line in self.removed} - {""} - added
        return not removed.isdisjoint(present)

    def _find_reformatted(self, lines: Sequence[str]) -> int | None:
        """Return where what the hunk adds is in the file but for blanks and line breaks, from 0."""
        added, removed = _without_blanks(self.added), _without_blanks(self.removed)
        # Nothing is in every file: a hunk that only removes lines cannot be recognised so.
        if not added:
            return None
        squeezed = [_without_blanks([line]) for line in lines]
        starts = [0, *accumulate(len(line) for line in squeezed)]
        for found in re.finditer(re.escape(added), "".join(squeezed)):
            first = bisect_right(starts, found.start()) - 1
            last = bisect_right(starts, found.end() - 1) - 1
            # Only here: another function may have kept the line that this one lost.
            around = squeezed[max(0, first - NEAR) : last + 1 + NEAR]
            if not removed or removed not in "".join(around):
                return first
        return None

    def _closest_fit(self, lines: Sequence[str]) -> Fit:
        """Find the place that has the most of the hunk's text, and say which of its lines differ.

        Each line of the hunk votes for the places at which the hunk would begin, with its length: a
        bracket is everywhere, and says nothing about the place.
        """
        # Versions, commits and checksums change most often.
        masked = r"\b[0-9a-f]{7,}\b|\d+(\.\d+)+"
        wanted = [re.sub(masked, "#", line.strip()) for line in self.before]
        present = [re.sub(masked, "#", line.strip()) for line in lines]
        votes = dict[int, set[int]]()
        for number, line in enumerate(wanted):
            spelled = {line} if line in present else _similar_lines(line, present)
            for at, other in enumerate(present):
                if other in spelled:
                    votes.setdefault(at - number, set()).add(number)

        def weight(numbers: set[int]) -> int:
            return sum(len(wanted[number]) for number in numbers)

        def gather(place: int) -> set[int]:
            # Upstream may have put lines in between, so that the rest of the hunk moved on.
            return set[int]().union(*(votes.get(place + shift, ()) for shift in range(SLACK + 1)))

        # Of two windows with the same lines, the one that begins where the hunk does.
        place = max(votes, key=lambda at: (weight(gather(at)), weight(votes[at])), default=0)
        if weight(gather(place)) < CLOSE * max(1, sum(map(len, wanted))):
            return Fit("missing", self.start)
        best = max(0, place)
        differing = tuple(_differing_lines(self.before, lines[best : best + len(wanted) + SLACK]))
        context = set(self.before) - set(self.removed)
        fuzz = all(not was or f"{was}\n" in context for was, _ in differing)
        verdict: FaultKind = "fuzz" if differing and fuzz else "changed"
        return Fit(verdict, best + 1, differing, _numbered_lines(lines, best, len(wanted)))


def apply_hunks(lines: list[str], hunks: Sequence[Hunk]) -> Iterator[tuple[int, Hunk, Fit]]:
    """Put hunks into a file's lines; yield those that do not fit, each with its number from 1.

    From the last one on, so that the line numbers of the others stay true.
    """
    for number, hunk in reversed(list(enumerate(hunks, 1))):
        fit = hunk.fit(lines)
        if fit.good:
            lines[fit.line - 1 : fit.line - 1 + len(hunk.before)] = hunk.after
        else:
            yield number, hunk, fit


def places(lines: Sequence[str], block: Sequence[str]) -> list[int]:
    """Return every index at which a block of lines stands without a gap."""
    wanted = list(block)
    # By its first line before the rest: hunks and files may be long.
    return [
        at
        for at in range(len(lines) - len(wanted) + 1)
        if lines[at : at + 1] == wanted[:1] and list(lines[at : at + len(wanted)]) == wanted
    ]


def _without_blanks(lines: Sequence[str]) -> str:
    return re.sub(r"\s+", "", "".join(lines))


def _similar_lines(line: str, present: Sequence[str]) -> set[str]:
    """Return the lines that are another spelling of this one."""
    if len(line) < SHORTEST_ALIKE:
        return set()
    return set(difflib.get_close_matches(line, present, len(present), ALIKE))


def _differing_lines(before: Sequence[str], here: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each line of the patch that the place lacks, with the one in its place.

    Either is empty where the other has none.
    """
    was = [line.rstrip() for line in before]
    now = [line.rstrip() for line in here]
    matcher = difflib.SequenceMatcher(None, was, now, autojunk=False)
    for kind, first, last, start, end in matcher.get_opcodes():
        # What follows the hunk's last line does not belong to it.
        if kind == "equal" or first == len(was):
            continue
        # At the hunk's end the window reaches further than the lines that were replaced.
        stop = min(end, start + last - first) if last == len(was) else end
        yield from zip_longest(was[first:last], now[start:stop], fillvalue="")


def _numbered_lines(lines: Sequence[str], at: int, size: int) -> tuple[str, ...]:
    first = max(0, at - AROUND)
    here = lines[first : at + size + AROUND]
    return tuple(f"{number:5} {line.rstrip()}" for number, line in enumerate(here, first + 1))
