"""Reads a log: its root error, and what is known of it.

The last line of a log names what failed to follow; the root is what it followed from. A log is read
once, from a file, from gzip or from a pipe, in bounded time and memory.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from tfwright.diagnosis import advice, complaints, excerpt, facts, finder, sketch, tables
from tfwright.diagnosis.advice import Advice
from tfwright.diagnosis.complaints import Complaint, Line, Recognition
from tfwright.diagnosis.excerpt import Excerpt
from tfwright.diagnosis.facts import Facts
from tfwright.diagnosis.families import Family
from tfwright.diagnosis.sketch import LogStream

DETAIL_LINES = 6
"""Lines below the root that may name what it is about."""
ABOVE_LINES = 12
"""Lines above the root that may do so: the innermost frames of a traceback."""
MOST_MATCHES = 12
"""Matches that a diagnosis keeps; a log that holds more kinds of errors is not one failed build."""
_RC_FILE = re.compile(r"Reading rc options for '\w+' from (?P<file>\S{1,400}):$")
_PAIR = 2
"""Matches where a particular failure and its family both explain a line."""


@dataclass(frozen=True)
class Match:
    """What is known of a line of the log."""

    entry: Family
    line: int
    """Number of the line, from 1; 0 if no line shows it."""
    text: str
    explains: bool
    """Whether it is about the root error."""
    certain: bool = False
    """Whether the cause is proved: by the line alone, or by it and the facts of the build."""
    parameters: dict[str, str] = field(default_factory=dict)
    advice: Advice = field(default_factory=Advice)
    """What to type."""

    @property
    def cause(self) -> str:
        """Why it failed, or the usual reasons."""
        return tables.fill(self.entry.cause, self.parameters)

    @property
    def remedy(self) -> str:
        """What helps."""
        return tables.fill(self.entry.remedy, self.parameters)


@dataclass(frozen=True)
class Diagnosis:
    """What a log says."""

    first: Excerpt | None
    """The root error; None if nothing complains."""
    matches: tuple[Match, ...]
    """What is known: of the root error, the most particular first; then of other complaints."""
    harmless: tuple[Match, ...]
    """Lines that look bad and mean nothing."""
    lines: int
    """How many lines the log has."""

    @property
    def recognised(self) -> bool:
        """Whether anything is known."""
        return bool(self.matches or self.harmless)

    @property
    def understood(self) -> bool:
        """Whether the root error is of a kind that is known, and not only of a known form."""
        return any(match.explains and match.entry.rank == "root" for match in self.matches)


def read(stream: LogStream, known: Facts | None = None) -> Diagnosis:
    """Read a log to its end; `known` are facts of the build that the log need not show."""
    made = sketch.read(stream)
    kept = complaints.kept(made)
    # Before the complaints: a fact of the build rules out causes of another platform.
    shown = facts.of([line.text for line in kept], known)
    found = finder.with_tracebacks(kept, complaints.find(kept, shown))
    found = finder.survived(kept, found)
    root = finder.root(kept, found)
    matches = _explaining(kept, root, shown) if root else []
    for complaint in found:
        # Wrappers and summaries only repeat that something failed.
        if complaint is not root and complaint.rank in {"root", "weak"}:
            matches += _others(kept, complaint, matches, shown)
    return Diagnosis(
        first=excerpt.around(kept, root) if root else None,
        matches=tuple(matches[:MOST_MATCHES]),
        harmless=tuple(_harmless(kept, found)),
        lines=made.lines,
    )


def _explaining(kept: Sequence[Line], root: Complaint, shown: Facts) -> list[Match]:
    """Return what is known of the root, the most particular first."""
    line = kept[root.at]
    readings = [_given(_detailed(reading, kept, root.at), kept) for reading in root.readings]
    matches = [_match(line, reading, shown, explains=True) for reading in readings]
    return _advised(matches)


def _advised(matches: list[Match]) -> list[Match]:
    """Give what the family advises to the particular failure, which has no lines of its own.

    A build that fails shows the first match only.
    """
    if len(matches) < _PAIR or matches[0].advice:
        return matches
    first, family, *others = matches
    return [replace(first, advice=family.advice), replace(family, advice=Advice()), *others]


def _detailed(reading: Recognition, kept: Sequence[Line], at: int) -> Recognition:
    """Complete the parameters of a reading from the lines around the root.

    Some tools name the symbol, or the header, on the line after their message; a traceback says
    before it who asked for what is missing.
    """
    family = reading.family
    parameters = dict(reading.parameters)
    if family.detail_regex:
        below = kept[at + 1 : at + 1 + DETAIL_LINES]
        _complete(parameters, family.detail_regex, below)
    if family.above_regex:
        above = kept[max(0, at - ABOVE_LINES) : at]
        # The innermost frame of a traceback is its last, right above the exception.
        _complete(parameters, family.above_regex, above[::-1])
    return replace(reading, parameters=parameters)


def _complete(parameters: dict[str, str], pattern: re.Pattern[str], around: Sequence[Line]) -> None:
    """Add what a pattern finds in the lines, the first of which counts most."""
    for line in around:
        found = pattern.search(line.text)
        for group, value in found.groupdict().items() if found else ():
            # Alternatives of one expression need groups of different names: file, file2.
            name = group.rstrip("0123456789")
            parameters[name] = parameters.get(name) or value or ""


def _given(reading: Recognition, kept: Sequence[Line]) -> Recognition:
    """Add the rc file that gives an option, where Bazel shows what it reads (--announce_rc)."""
    option = reading.parameters.get("option") or reading.parameters.get("config")
    if not option or not reading.family.id.startswith("bazel-"):
        return reading
    # Bazel announces the file on one line, and its options on the next.
    for announced, options in pairwise(kept):
        found = _RC_FILE.search(announced.text)
        if found and re.search(rf"(?:^|[ =]){re.escape(option)}(?:$|[ =])", options.text):
            return replace(reading, parameters={**reading.parameters, "given": found["file"]})
    return reading


def _others(
    kept: Sequence[Line], complaint: Complaint, matches: Sequence[Match], shown: Facts
) -> list[Match]:
    """Return what is known of another complaint, unless the same is known already."""
    # The most particular reading; its family would say the same in general terms.
    reading = complaint.readings[0]
    seen = {match.entry.id for match in matches}
    if reading.family.id in seen or len(seen) > MOST_MATCHES:
        return []
    return [_match(kept[complaint.at], reading, shown, explains=False)]


def _match(line: Line, reading: Recognition, shown: Facts, *, explains: bool) -> Match:
    family = reading.family
    return Match(
        entry=family,
        line=line.number,
        text=line.text,
        explains=explains,
        certain=family.certain and shown.prove(family),
        parameters=dict(reading.parameters),
        advice=advice.of(family, reading.parameters),
    )


def _harmless(kept: Sequence[Line], found: Sequence[Complaint]) -> list[Match]:
    """Return the first line of each harmless kind."""
    matches: dict[str, Match] = {}
    for complaint in found:
        if complaint.rank == "harmless" and complaint.family.id not in matches:
            line = kept[complaint.at]
            reading = complaint.readings[0]
            # Without facts: nothing has to be proved of a line that means nothing.
            matches[complaint.family.id] = _match(line, reading, Facts(), explains=False)
    return list(matches.values())
