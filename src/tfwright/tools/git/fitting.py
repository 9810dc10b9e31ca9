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

Verdict = Literal[
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
class Hunk:
    """One place in a file; lines keep their ends."""

    start: int
    """The line, from 1, where it was before the patch."""
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def removed(self) -> list[str]:
        """The lines that the patch takes away."""
        return [row[2:] for row in self._changes() if row.startswith("- ")]

    @property
    def added(self) -> list[str]:
        """The lines that the patch brings."""
        return [row[2:] for row in self._changes() if row.startswith("+ ")]

    def _changes(self) -> Iterator[str]:
        return difflib.ndiff(self.before, self.after)


@dataclass(frozen=True)
class Fit:
    """How one hunk fits a file."""

    verdict: Verdict
    line: int
    """Where the hunk belongs in the file as it is now, from 1."""
    differing: tuple[tuple[str, str], ...] = ()
    """Where the place has other lines: what the patch expects, and what the file has."""
    shown: tuple[str, ...] = ()
    """The file's lines there, numbered."""

    def offset(self, hunk: Hunk) -> int:
        """Return how many lines further down the place is than the patch says."""
        return self.line - hunk.start


def judge(lines: Sequence[str], hunk: Hunk) -> Fit:
    """Return how a hunk fits a file's lines; by content only, never by line numbers alone."""
    if not hunk.before:
        return Fit(_created(lines, hunk), 1)
    if not lines:
        return Fit("no file" if hunk.after else "gone", hunk.start)
    # The same lines may occur more than once: git too takes the place next to the old one.
    at = _nearest(places(lines, hunk.before), hunk.start)
    if at is not None:
        return Fit("fits" if at + 1 == hunk.start else "moved", at + 1)
    both = (*hunk.before, *hunk.after)
    if len(both) > MOST_COMPARED or max(map(len, both)) > LONGEST_COMPARED:
        return Fit("too long", hunk.start)
    return _unfit(lines, hunk)


def _created(lines: Sequence[str], hunk: Hunk) -> Verdict:
    """Judge a hunk that makes a whole file."""
    if not lines:
        return "fits"
    return "done" if tuple(lines) == hunk.after else "exists"


def _unfit(lines: Sequence[str], hunk: Hunk) -> Fit:
    """Say why a hunk does not fit lines that are not empty."""
    if fit := _but_for_ends(lines, hunk):
        return fit
    at = _nearest(places(lines, hunk.after), hunk.start)
    if hunk.after and at is not None and not _still_there(lines, hunk):
        return Fit("done", at + 1, shown=_shown(lines, at, len(hunk.after)))
    at = _in_other_words(lines, hunk)
    if at is not None:
        return Fit("reformatted", at + 1, shown=_shown(lines, at, len(hunk.added)))
    return _closest(lines, hunk)


def _but_for_ends(lines: Sequence[str], hunk: Hunk) -> Fit | None:
    """Find the place of a hunk whose lines end otherwise: in CRLF, or, the last one, in nothing."""
    plain = [line.rstrip("\r\n") for line in lines]
    wanted = [line.rstrip("\r\n") for line in hunk.before]
    at = _nearest(places(plain, wanted), hunk.start)
    if at is None:
        return None
    # Quoted, since an end of a line cannot be seen.
    pairs = zip(hunk.before, lines[at:], strict=False)
    differing = [(repr(was), repr(now)) for was, now in pairs if was != now]
    return Fit("ends", at + 1, tuple(differing))


def places(lines: Sequence[str], block: Sequence[str]) -> list[int]:
    """Return every index at which a block of lines stands without a gap."""
    wanted = list(block)
    starts = range(len(lines) - len(wanted) + 1)
    # By its first line before the rest: hunks and files may be long.
    return [
        at
        for at in starts
        if lines[at : at + 1] == wanted[:1] and list(lines[at : at + len(wanted)]) == wanted
    ]


def _nearest(places: Sequence[int], start: int) -> int | None:
    return min(places, key=lambda at: abs(at + 1 - start), default=None)


def _still_there(lines: Sequence[str], hunk: Hunk) -> bool:
    """Tell whether a line that the patch removes is still in the file.

    Neighbours of a removed line can come together for another reason: the line moved.
    """
    present = {line.strip() for line in lines}
    removed = [line.strip() for line in hunk.removed if line.strip()]
    # A line that is both removed and added only changes its place.
    added = {line.strip() for line in hunk.added}
    return any(line in present for line in removed if line not in added)


def _in_other_words(lines: Sequence[str], hunk: Hunk) -> int | None:
    """Return where what a hunk adds is in the file but for blanks and line breaks, from 0."""
    added = _squeezed(hunk.added)
    removed = _squeezed(hunk.removed)
    # Nothing is in every file: a hunk that only removes lines cannot be recognised so.
    if not added:
        return None
    squeezed = [_squeezed([line]) for line in lines]
    whole = "".join(squeezed)
    starts = [0, *accumulate(len(line) for line in squeezed)]
    for found in re.finditer(re.escape(added), whole):
        first = bisect_right(starts, found.start()) - 1
        last = bisect_right(starts, found.end() - 1) - 1
        # Only here: another function may have kept the line that this one lost.
        around = squeezed[max(0, first - NEAR) : last + 1 + NEAR]
        if not removed or removed not in "".join(around):
            return first
    return None


def _squeezed(lines: Sequence[str]) -> str:
    return re.sub(r"\s+", "", "".join(lines))


def _closest(lines: Sequence[str], hunk: Hunk) -> Fit:
    """Find the place that has the most of the hunk's text, and say which of its lines differ."""
    wanted = [_masked(line) for line in hunk.before]
    present = [_masked(line) for line in lines]
    best, share = _elected(_votes(wanted, present), wanted)
    if share < CLOSE:
        return Fit("missing", hunk.start)
    size = len(wanted)
    differing = tuple(_differing(hunk.before, lines[best : best + size + SLACK]))
    context = set(hunk.before) - set(hunk.removed)
    fuzz = all(not was or f"{was}\n" in context for was, _ in differing)
    verdict: Verdict = "fuzz" if differing and fuzz else "changed"
    return Fit(verdict, best + 1, differing, _shown(lines, best, size))


def _masked(line: str) -> str:
    """Return a line without the versions, commits and checksums in it, which change most often."""
    return re.sub(r"\b[0-9a-f]{7,}\b|\d+(\.\d+)+", "#", line.strip())


def _votes(wanted: Sequence[str], present: Sequence[str]) -> dict[int, dict[int, float]]:
    """Return, for each place at which the hunk could begin, the weight of each line found there.

    A line counts by its length: a bracket is everywhere, and says nothing about the place.
    """
    where: dict[str, list[int]] = {}
    for number, line in enumerate(present):
        where.setdefault(line, []).append(number)
    votes: dict[int, dict[int, float]] = {}
    for number, line in enumerate(wanted):
        found = {at: float(len(line)) for at in where.get(line, ())}
        for at, weight in (found or _alike(line, present)).items():
            votes.setdefault(at - number, {})[number] = weight
    return votes


def _alike(line: str, present: Sequence[str]) -> dict[int, float]:
    """Return the lines that are another spelling of this one, with their weights."""
    if len(line) < SHORTEST_ALIKE:
        return {}
    matcher = difflib.SequenceMatcher(None, autojunk=False)
    # SequenceMatcher keeps what it knows of the second sequence, so that one stays the same.
    matcher.set_seq2(line)
    alike = {}
    for at, other in enumerate(present):
        matcher.set_seq1(other)
        # The quick ratios are upper bounds, and spare most of a long file's comparisons.
        if matcher.real_quick_ratio() > ALIKE and matcher.quick_ratio() > ALIKE:
            ratio = matcher.ratio()
            if ratio > ALIKE:
                alike[at] = ratio * len(line)
    return alike


def _elected(votes: dict[int, dict[int, float]], wanted: Sequence[str]) -> tuple[int, float]:
    """Return the place with the most weight, and its share of the hunk's whole weight."""
    best, most = 0, 0.0
    for place, own in votes.items():
        gathered: dict[int, float] = {}
        # Upstream may have put lines in between, so that the rest of the hunk moved on.
        for shift in range(SLACK + 1):
            for number, weight in votes.get(place + shift, {}).items():
                gathered[number] = max(weight, gathered.get(number, 0.0))
        weight = sum(gathered.values())
        exact = sum(own.values())
        # Of two windows with the same lines, the one that begins where the hunk does.
        if weight + exact / 1000 > most:
            best, most = place, weight + exact / 1000
    return max(0, best), most / max(1, sum(len(line) for line in wanted))


def _differing(before: Sequence[str], here: Sequence[str]) -> Iterator[tuple[str, str]]:
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


def _shown(lines: Sequence[str], at: int, size: int) -> tuple[str, ...]:
    first = max(0, at - AROUND)
    here = lines[first : at + size + AROUND]
    return tuple(f"{number:5} {line.rstrip()}" for number, line in enumerate(here, first + 1))
