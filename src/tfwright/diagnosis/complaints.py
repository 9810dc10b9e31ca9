"""Finds the lines of a log that complain, and says which families each belongs to."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate

from tfwright.diagnosis.facts import Facts
from tfwright.diagnosis.families import Family, Rank, all_families, rule
from tfwright.diagnosis.log import Line, both_ends

MOST_COMPLAINTS = 6000
"""Different lines that are compared with the families; of more, the first and the last half."""

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
_FOREIGN: Mapping[str, tuple[str, ...]] = {
    "nccl": ("fetch-", "pip-", "too-many", "disk-"),
    "exception": ("bazel-", "link-", "host-", "nvcc-"),
    "source": ("gpu-", "op-", "tf-"),
}
"""By a rule that matches a line, how the names of families begin that do not speak of it."""


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


def find(lines: Sequence[Line], shown: Facts) -> list[Complaint]:
    """Return the lines that complain, in the order of the log.

    The facts decide whether a line that is mostly harmless is so in this build.
    """
    # Long logs repeat themselves: each different text is judged once.
    texts = list(dict.fromkeys(line.message for line in lines))
    hits = both_ends(sorted(_stems_in(texts).items()), MOST_COMPLAINTS)
    judged = {texts[number]: _judge(texts[number], stems, shown) for number, stems in hits}
    found = []
    for at, line in enumerate(lines):
        if known := judged.get(line.message, ()):
            family = known[0].family
            excused = family.rank != "harmless" or shown.excuses(family)
            found.append(Complaint(at, known, family.rank if excused else "weak"))
    return found


@cache
def _families_by_text() -> Mapping[str, tuple[int, ...]]:
    """Return the texts to look for, each with the numbers of the families that may then match."""
    index: dict[str, list[int]] = {}
    for number, family in enumerate(all_families()):
        for literal in family.literals:
            stem = next((stem for stem in _STEMS if stem in literal), literal)
            index.setdefault(stem, []).append(number)
    return {stem: tuple(dict.fromkeys(numbers)) for stem, numbers in index.items()}


def _stems_in(texts: Sequence[str]) -> dict[int, list[str]]:
    """Return which texts hold which of the stems that families require."""
    whole = "\n".join(texts)
    starts = [0, *accumulate(len(text) + 1 for text in texts)]
    found: dict[int, list[str]] = {}
    for stem in _families_by_text():
        at = whole.find(stem)
        while at >= 0:
            line = bisect_right(starts, at) - 1
            found.setdefault(line, []).append(stem)
            at = whole.find(stem, starts[line + 1])
    return found


def _judge(line: str, stems: Iterable[str], shown: Facts) -> Judged:
    """Return what the families say of a line; nothing if it complains of nothing."""
    logged = rule("logged").match(line)
    severity = logged and (logged["old"] or logged["new"])
    quoting = not logged and (rule("quoting").match(line) or rule("command").match(line))
    remark = bool(rule("remark").match(line) or quoting or severity in {"I", "W"})
    numbers = {number for stem in stems for number in _families_by_text()[stem]}
    # Most lines of a long log are remarks, and few families expect one.
    return _readings(line, numbers & _remark_families() if remark else numbers, shown)


@cache
def _remark_families() -> frozenset[int]:
    """Return the numbers of the families that speak of information and warnings."""
    return frozenset(number for number, family in enumerate(all_families()) if family.remark)


def _readings(line: str, numbers: Iterable[int], shown: Facts) -> Judged:
    """Return what is known of a line: the particular failure, and the family that it belongs to.

    The next families are more general, and would add guesses. A failure that a fact rules out
    leaves its place to the next one.
    """
    foreign = next((names for name, names in _FOREIGN.items() if rule(name).match(line)), ())
    # What NCCL says, no refinement of these families speaks of either.
    whole = foreign == _FOREIGN["nccl"]
    refinement = general = weak = None
    for number in sorted(numbers):
        family = all_families()[number]
        vague = family.rank in {"weak", "hint"}
        if (family.sample and refinement) or (vague and weak):
            continue
        if family.id.startswith(foreign) and (whole or not family.sample):
            continue
        if not any(literal in line for literal in family.literals):
            continue
        parameters = family.match(line)
        # What a fact rules out says nothing of a line, but hides it from more general families; a
        # particular failure, or a harmless line of one system, leaves its place to the next one.
        passes = family.sample or family.rank == "harmless"
        if parameters is None or (passes and not shown.allows(family)):
            continue
        reading = Recognition(family, parameters)
        if family.sample:
            refinement = reading
        elif vague:
            weak = reading
        else:
            general = reading
            break
    # What any program may say adds nothing to what this tool says.
    family_reading = general or (None if refinement else weak)
    readings = (refinement, family_reading)
    return tuple(reading for reading in readings if reading and shown.allows(reading.family))
