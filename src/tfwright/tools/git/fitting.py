"""Whether a hunk of a patch fits a file: where, how far from its old place, and if not, why."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

AROUND = 2
"""Lines of the tree that are shown before and after the place where a hunk belongs."""
CLOSE = 0.5
"""Share of a hunk's lines that a place must have to count as the hunk's own, only changed."""

Verdict = Literal["fits", "moved", "done", "reformatted", "changed", "missing", "exists", "no file"]
"""``done``: the change is in the file already. ``reformatted``: it seems to be, in other words.
``changed``: the place is there, with other lines. ``missing``: nothing like it is there.
``exists``: the patch creates a file that is there. ``no file``: it changes one that is not."""


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
        return Fit("exists" if lines else "fits", 1)
    if not lines:
        return Fit("no file", hunk.start)
    # The same lines may occur more than once: git too takes the place next to the old one.
    at = _nearest(_places(lines, hunk.before), hunk.start)
    if at is not None:
        return Fit("fits" if at + 1 == hunk.start else "moved", at + 1)
    at = _nearest(_places(lines, hunk.after), hunk.start)
    if hunk.after and at is not None and not _still_there(lines, hunk):
        return Fit("done", at + 1, shown=_shown(lines, at, len(hunk.after)))
    if _in_other_words(lines, hunk):
        return Fit("reformatted", hunk.start)
    return _closest(lines, hunk)


def _places(lines: Sequence[str], block: Sequence[str]) -> list[int]:
    """Return every index at which a block of lines stands without a gap."""
    wanted = list(block)
    last = len(lines) - len(wanted)
    return [at for at in range(last + 1) if list(lines[at : at + len(wanted)]) == wanted]


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


def _in_other_words(lines: Sequence[str], hunk: Hunk) -> bool:
    """Tell whether what a hunk adds is in the file but for blanks and line breaks."""
    added, removed = _squeezed(hunk.added), _squeezed(hunk.removed)
    # Nothing is in every file: a hunk that only removes lines cannot be recognised so.
    if not added:
        return False
    whole = _squeezed(lines)
    return added in whole and (not removed or removed not in whole)


def _squeezed(lines: Sequence[str]) -> str:
    return re.sub(r"\s+", "", "".join(lines))


def _closest(lines: Sequence[str], hunk: Hunk) -> Fit:
    """Find the place that has the most of the hunk's lines, and say which of them differ."""
    # SequenceMatcher keeps what it knows of the second sequence, so that one stays the same.
    matcher = difflib.SequenceMatcher(None, autojunk=False)
    matcher.set_seq2([line.strip() for line in hunk.before])
    best, share = 0, 0.0
    size = max(1, len(hunk.before))
    for at in range(max(1, len(lines) - size + 1)):
        matcher.set_seq1([line.strip() for line in lines[at : at + size]])
        # The quick ratio is an upper bound, and spares most of a long file's comparisons.
        if matcher.real_quick_ratio() > share and (found := matcher.ratio()) > share:
            best, share = at, found
    if share < CLOSE:
        return Fit("missing", hunk.start)
    here = lines[best : best + size]
    pairs = zip(hunk.before, here, strict=False)
    differing = tuple((was.rstrip(), now.rstrip()) for was, now in pairs if was != now)
    return Fit("changed", best + 1, differing, _shown(lines, best, size))


def _shown(lines: Sequence[str], at: int, size: int) -> tuple[str, ...]:
    first = max(0, at - AROUND)
    here = lines[first : at + size + AROUND]
    return tuple(f"{number:5} {line.rstrip()}" for number, line in enumerate(here, first + 1))
