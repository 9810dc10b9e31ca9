"""Finds the lines of a log that complain, and says which families each belongs to."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from typing import TypeVar

from tfwright.diagnosis import lines
from tfwright.diagnosis.facts import Facts
from tfwright.diagnosis.families import Family, Rank, everything
from tfwright.diagnosis.sketch import Sketch

MOST_LINES = 2000
"""Lines of one piece that are kept; of more, the first and the last half."""
MOST_COMPLAINTS = 6000
"""Different lines that are compared with the families; of more, the first and the last half."""

MOST_OVERWRITTEN = 50
"""Texts that a progress bar wrote over each other, of one line of the file."""
_MARKS = (b"\x1b", b"\x08", b"\r", b"[31m", b"[1m", b"[0m", b"[0;", b"[1;")
"""What lines hold that a terminal would not show as text."""
Item = TypeVar("Item")

_STEMS = (
    "rror",
    "annot",
    "not ",
    "fail",
    "ndefined",
    "nvalid",
    "atal",
    "unsupported",
    "nable",
    "xception",
    " found",
    "CUDA",
    "issing",
    "nrecognized",
    "enied",
    "ould",
    "version",
    "warning",
    "package",
)
"""Parts that many literals share: looking for one of these finds all of them."""
_REMARK = re.compile(
    r"(?:WARNING|INFO|DEBUG|Note|note|[Ww]arning|CMake Warning|DEPRECATION|\[WARN(?:ING)?\])\b"
    r"(?!:? ?fatal)"
    # apt's warnings and notes, what build services mark so, and the subject of a commit
    r"|[WN]: |##\[(?:warning|debug|notice|command|group)\]|::(?:warning|debug|notice)[ :]"
    r"|HEAD is now at |Previous HEAD position was "
    # what a test that passed, or was left out, is called, and why
    r"|(?:\S{1,300}::\S{1,300} )?(?:SKIPPED|XFAIL|XPASS|PASSED)\b"
)
"""Lines that begin like this report no error, whatever they quote."""
_QUOTING = re.compile(
    r"[^\n]{1,300}?(?::|\)) ?(?:Command line )?(?:\w{0,30}[Ww]arning|note|remark)"
    r"(?: #\d+(?:-D)?| [A-Z]+\d+)? ?: "
)
"""A compiler's warning may quote what looks like an error."""
_LOGGED = re.compile(
    r"""(?:\d{4}-\d\d-\d\d[ ]\d\d:\d\d:\d\d(?:\.\d+)?:?[ ])?
        (?:(?P<old>[IWEF])[ ]\S{1,300}:\d+\][ ]?
        |(?P<new>[IWEF])\d{4}[ ]\d\d:\d\d:[\d.]+[ ]+\d+[ ]\S{1,300}:\d+\][ ]?)""",
    re.VERBOSE,
)
"""A line that TensorFlow logs: severity, file, line."""
_EXCEPTION = re.compile(r"(?!java|com\.google)[A-Za-z_][\w.]*(?:Error|Exception): ")
_COMPILED = ("bazel-", "link-", "host-", "nvcc-")
"""Families of a build's tools: an exception of Python may use the same words about a library."""
_SOURCE = re.compile(
    r"[^\s:(]{1,400}(?:\(\d+(?:,\d+)?\)|:\d+(?::\d+)?) ?: ?(?:fatal )?error\b"
    r"|.{0,600}undefined (?:reference|symbol)"
)
"""What a compiler or linker says of a source: it may name what is a status at run time."""
_RUN = ("gpu-", "op-", "tf-")
"""Families of what a program says while it runs."""
_NCCL = re.compile(r"[^\s:]{1,200}:\d+:\d+ \[\d+\] .{0,120}NCCL WARN ")
"""What NCCL writes: a peer that does not answer is not a download server."""
_DOWNLOADED = ("fetch-", "pip-", "too-many")
"""Families of downloads, and of limits that anything may meet."""
_COMMAND = re.compile(
    r"\s*(?:\S*/)?"
    r"(?:exec env -|\(cd /|[\w.+-]*(?:gcc|g\+\+|clang|clang\+\+|nvcc) .{0,4000}? -(?:[co]|shared) )"
    # With --announce_rc, Bazel shows the options that it reads.
    r"|\s*(?:Inherited )?'\w+' options: |SUBCOMMAND: "
)
"""A command or its options, as a build shows them: they say nothing by themselves."""


@dataclass(frozen=True)
class Line:
    """A line of the log that was kept."""

    number: int
    """From 1, as an editor counts."""
    text: str
    """Without colours."""

    @property
    def said(self) -> str:
        """What the tool said: the line without the prefixes of build services."""
        return lines.said(self.text)


@dataclass(frozen=True)
class Recognition:
    """What one family makes of a line."""

    family: Family
    parameters: Mapping[str, str] = field(default_factory=dict)


Judged = tuple[Recognition, ...]
"""What the families make of a line, the most particular first."""


@dataclass(frozen=True)
class Complaint:
    """A line that complains."""

    at: int
    """Its index among the lines that were kept."""
    readings: Judged
    rank: Rank

    @property
    def family(self) -> Family:
        """The family that describes the line best."""
        return self.readings[0].family


def kept(sketch: Sketch) -> list[Line]:
    """Return the lines of a sketch; what a progress bar wrote over itself becomes lines, too."""
    found: list[Line] = []
    for piece in sketch.pieces:
        rows = piece.data.removesuffix(b"\n").split(b"\n")
        plain = _is_plain(piece.data)
        for offset in _both_ends(range(len(rows)), MOST_LINES):
            number = piece.line + offset
            row = rows[offset]
            if plain and len(row) < lines.WIDEST:
                found.append(Line(number, row.decode("ascii")))
            else:
                found += _unwritten(number, row)
    return found


def _is_plain(data: bytes) -> bool:
    """Say whether lines can be taken as they are."""
    return data.isascii() and not any(mark in data for mark in _MARKS)


def _unwritten(number: int, row: bytes) -> list[Line]:
    """Return what stood in one line of the file, one after the other."""
    parts = row.rstrip(b"\r").rsplit(b"\r", MOST_OVERWRITTEN)
    if len(parts) > MOST_OVERWRITTEN:
        del parts[0]
    texts = [lines.decoded(part) for part in parts]
    return [Line(number, text) for text in texts[:-1] if text] + [Line(number, texts[-1])]


def _both_ends(items: Sequence[Item], most: int) -> Sequence[Item]:
    """Return at most that many of some items: the first and the last ones."""
    if len(items) <= most:
        return items
    return [*items[: most // 2], *items[-most // 2 :]]


def find(kept_lines: Sequence[Line], shown: Facts) -> list[Complaint]:
    """Return the lines that complain, in the order of the log.

    The facts decide whether a line that is mostly harmless is so in this build.
    """
    # Long logs repeat themselves: each different text is judged once.
    texts = list(dict.fromkeys(line.text for line in kept_lines))
    hits = _both_ends(sorted(_hits(texts).items()), MOST_COMPLAINTS)
    judged: dict[str, Judged] = {}
    for number, stems in hits:
        known = _judge(texts[number], stems)
        if known:
            judged[texts[number]] = known
    found = []
    for at, line in enumerate(kept_lines):
        known = tuple(
            reading for reading in judged.get(line.text, ()) if shown.allow(reading.family)
        )
        if known:
            found.append(_ranked(Complaint(at, known, known[0].family.rank), shown))
    return found


def _ranked(complaint: Complaint, shown: Facts) -> Complaint:
    """Return the complaint with the rank that it has where these facts hold."""
    excused = complaint.rank != "harmless" or shown.excuse(complaint.family)
    return complaint if excused else replace(complaint, rank="weak")


@cache
def _index() -> Mapping[str, tuple[int, ...]]:
    """Return the texts to look for, each with the numbers of the families that may then match."""
    index: dict[str, list[int]] = {}
    for number, family in enumerate(everything()):
        for literal in family.literals:
            stem = next((stem for stem in _STEMS if stem in literal), literal)
            index.setdefault(stem, []).append(number)
    return {stem: tuple(dict.fromkeys(numbers)) for stem, numbers in index.items()}


def _hits(texts: Sequence[str]) -> dict[int, list[str]]:
    """Return which texts hold which of the stems that families require."""
    whole = "\n".join(texts)
    starts = [0, *accumulate(len(text) + 1 for text in texts)]
    found: dict[int, list[str]] = {}
    for stem in _index():
        at = whole.find(stem)
        while at >= 0:
            line = bisect_right(starts, at) - 1
            found.setdefault(line, []).append(stem)
            at = whole.find(stem, starts[line + 1])
    return found


def _judge(text: str, stems: Iterable[str]) -> Judged:
    """Return what the families say of a line; nothing if it complains of nothing."""
    said = lines.said(text)
    logged = _LOGGED.match(said)
    severity = logged and (logged["old"] or logged["new"])
    quoting = not logged and (_QUOTING.match(said) or _COMMAND.match(said))
    remark = bool(_REMARK.match(said) or quoting or severity in {"I", "W"})
    numbers = {number for stem in stems for number in _index()[stem]}
    # Most lines of a long log are remarks, and few families expect one.
    return _readings(said, numbers & _of_remarks() if remark else numbers)


@cache
def _of_remarks() -> frozenset[int]:
    """Return the numbers of the families that speak of information and warnings."""
    return frozenset(number for number, family in enumerate(everything()) if family.remark)


def _foreign(said: str) -> tuple[tuple[str, ...], bool]:
    """Return how the names of families begin that do not speak of such a line.

    The flag says whether that holds for their refinements, too.
    """
    if _NCCL.match(said):
        return _DOWNLOADED, True
    if _EXCEPTION.match(said):
        return _COMPILED, False
    return (_RUN if _SOURCE.match(said) else ()), False


def _readings(said: str, numbers: Iterable[int]) -> Judged:
    """Return what is known of a line: the particular failure, and the family that it belongs to.

    The next families are more general, and would add guesses.
    """
    refinement = general = weak = None
    foreign, whole = _foreign(said)
    for number in sorted(numbers):
        family = everything()[number]
        if (family.sample and refinement) or (family.rank == "weak" and weak):
            continue
        if family.id.startswith(foreign) and (whole or not family.sample):
            continue
        if not any(literal in said for literal in family.literals):
            continue
        parameters = family.match(said)
        if parameters is None:
            continue
        reading = Recognition(family, parameters)
        if family.sample:
            refinement = reading
        elif family.rank == "weak":
            weak = reading
        else:
            general = reading
            break
    # What any program may say adds nothing to what this tool says.
    family_reading = general or (None if refinement else weak)
    return tuple(reading for reading in (refinement, family_reading) if reading)
