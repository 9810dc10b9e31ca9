"""Finds the lines of a log that complain, and says which families each belongs to."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate

from tfwright.diagnosis import lines
from tfwright.diagnosis.facts import Facts
from tfwright.diagnosis.families import Family, Rank, everything
from tfwright.diagnosis.sketch import Sketch

MOST_LINES = 20_000
"""Lines that are compared with the families; of more, the first and the last half."""
MOST_FAMILIES = 3
"""Families that are kept of one line."""

_STEMS = (
    *(
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
    ),
    *(" found", "CUDA", "issing", "nrecognized", "enied", "ould", "version", "warning", "package"),
)
"""Parts that many literals share: looking for one of these finds all of them."""
_REMARK = re.compile(
    r"(?:WARNING|INFO|DEBUG|Note|note|warning|CMake Warning|DEPRECATION|\[WARN(?:ING)?\])\b(?!:? ?fatal)"
)
"""Lines that begin like this report no error, whatever they quote."""
_QUOTING = re.compile(
    r"[^\n]{1,300}?(?::|\)) ?(?:[Ww]arning|note|remark)(?: #\d+(?:-D)?| [A-Z]+\d+)? ?: "
)
"""A compiler's warning may quote what looks like an error."""
_LOGGED = re.compile(
    r"""(?:\d{4}-\d\d-\d\d[ ]\d\d:\d\d:\d\d(?:\.\d+)?:?[ ])?
        (?:(?P<old>[IWEF])[ ]\S{1,300}:\d+\][ ]?
        |(?P<new>[IWEF])\d{4}[ ]\d\d:\d\d:[\d.]+[ ]+\d+[ ]\S{1,300}:\d+\][ ]?)""",
    re.VERBOSE,
)
"""A line that TensorFlow logs: severity, file, line."""
_COMMAND = re.compile(
    r"\s*(?:/\S*/)?(?:exec env -|\(cd /|[\w.+-]*(?:gcc|g\+\+|clang|clang\+\+|nvcc) .{0,4000}? -[co] )"
)
"""A command that is shown, or run, by a build: it says nothing by itself."""


@dataclass(frozen=True)
class Line:
    """A line of the log that was kept."""

    number: int
    """From 1, as an editor counts."""
    text: str
    """Without colours."""


@dataclass(frozen=True)
class Reading:
    """What one family makes of a line."""

    family: Family
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Complaint:
    """A line that complains."""

    at: int
    """Its index among the lines that were kept."""
    readings: tuple[Reading, ...]
    """The most particular one first."""
    rank: Rank

    @property
    def family(self) -> Family:
        """The family that describes the line best."""
        return self.readings[0].family


def kept(sketch: Sketch) -> list[Line]:
    """Return the lines of a sketch; what a progress bar wrote over itself becomes lines, too."""
    found: list[Line] = []
    for piece in sketch.pieces:
        for offset, raw in enumerate(piece.data.removesuffix(b"\n").split(b"\n")):
            number = piece.line + offset
            parts = raw.split(b"\r") if b"\r" in raw else (raw,)
            texts = [lines.decoded(part) for part in parts]
            found += [Line(number, text) for text in texts[:-1] if text]
            found.append(Line(number, texts[-1]))
    return found


def find(kept_lines: Sequence[Line], shown: Facts) -> list[Complaint]:
    """Return the lines that complain, in the order of the log.

    The facts decide whether a line that is mostly harmless is so in this build.
    """
    hits = sorted(_hits([line.text for line in kept_lines]).items())
    if len(hits) > MOST_LINES:
        hits = hits[: MOST_LINES // 2] + hits[-MOST_LINES // 2 :]
    found = (_judge(at, kept_lines[at].text, families) for at, families in hits)
    return [_ranked(complaint, shown) for complaint in found if complaint]


def _ranked(complaint: Complaint, shown: Facts) -> Complaint:
    """Return the complaint with the rank that it has where these facts hold."""
    excused = complaint.rank != "harmless" or shown.excuse(complaint.family)
    return complaint if excused else replace(complaint, rank="weak")


@lru_cache
def _index() -> Mapping[str, tuple[int, ...]]:
    """Return the texts to look for, each with the numbers of the families that may then match."""
    index: dict[str, list[int]] = {}
    for number, family in enumerate(everything()):
        for literal in family.literals:
            stem = next((stem for stem in _STEMS if stem in literal), literal)
            index.setdefault(stem, []).append(number)
    return {stem: tuple(dict.fromkeys(numbers)) for stem, numbers in index.items()}


def _hits(texts: Sequence[str]) -> dict[int, set[int]]:
    """Return which families may match which line, by the texts that they require."""
    whole = "\n".join(texts)
    starts = [0, *accumulate(len(text) + 1 for text in texts)]
    found: dict[int, set[int]] = {}
    for stem, numbers in _index().items():
        at = whole.find(stem)
        while at >= 0:
            line = bisect_right(starts, at) - 1
            found.setdefault(line, set()).update(numbers)
            at = whole.find(stem, starts[line + 1])
    return found


def _judge(at: int, text: str, numbers: Iterable[int]) -> Complaint | None:
    """Return what the families say of a line; None if it is no complaint."""
    said = lines.said(text)
    logged = _LOGGED.match(said)
    severity = logged and (logged["old"] or logged["new"])
    if _REMARK.match(said) or (not logged and (_QUOTING.match(said) or _COMMAND.match(said))):
        return _harmless(at, said, numbers)
    readings = _readings(said, numbers, remark=severity in {"I", "W"})
    if not readings:
        return None
    return Complaint(at, readings, readings[0].family.rank)


def _harmless(at: int, said: str, numbers: Iterable[int]) -> Complaint | None:
    """Return what is known of a remark that people take for an error; None if nothing is."""
    readings = _readings(said, numbers, remark=True)
    return Complaint(at, readings, readings[0].family.rank) if readings else None


def _readings(said: str, numbers: Iterable[int], *, remark: bool) -> tuple[Reading, ...]:
    """Return what the families say of a line; about a remark, only those that expect one."""
    found: list[Reading] = []
    families = everything()
    for number in sorted(numbers):
        family = families[number]
        if remark and not family.remark:
            continue
        if not any(literal in said for literal in family.literals):
            continue
        if found and family.rank != found[0].family.rank:
            # What any program may say adds nothing to what this tool says.
            continue
        parameters = family.match(said)
        if parameters is not None:
            found.append(Reading(family, parameters))
            if family.rank == "harmless" or len(found) == MOST_FAMILIES:
                break
    return tuple(found)
