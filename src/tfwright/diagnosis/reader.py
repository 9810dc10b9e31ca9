"""Reads a log: its root error, what is known of it, and whether another attempt helps.

The last line of a log names what failed to follow; the root is what it followed from. A log is read
once, in bounded time and memory.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from tfwright.diagnosis import complaints, facts, log, tables
from tfwright.diagnosis.complaints import Complaint, Judged, Recognition
from tfwright.diagnosis.facts import Facts
from tfwright.diagnosis.families import Family, add_groups, family_by_id, rule
from tfwright.diagnosis.log import SHOWN_OF_ROOT, Line, LogStream, shorten
from tfwright.diagnosis.root import REACH, Search
from tfwright.diagnosis.tables import Advice
from tfwright.progress import SILENCE, Listener

DETAIL_LINES = 6
"""Lines below the root that may name what it is about."""
ABOVE_LINES = 12
"""Lines above the root that may do so: the innermost frames of a traceback."""
SPEAKER_LINES = 30
"""Lines above the root, and below it, that may show whose output it is."""
CONFLICT_LINES = 30
"""Lines below a complaint in which pip lists what asks for which versions."""
MOST_MATCHES = 12
"""Matches that a diagnosis keeps; a log that holds more kinds of errors is not one failed build."""
AFTER = 9
"""Lines from the root on that are shown with it."""
LONGEST_COMMAND = 60
"""Lines of a command."""
OUT_OF_MEMORY = "memory-compiler-killed"
SERVER_DIED = "memory-bazel-server-died"
PACKAGE_BUILDS = ("pip-build-failed", "pip-metadata")

_COMMAND = re.compile(r"^ +\(cd .*?\)$", re.MULTILINE | re.DOTALL)
_RC_FILE = re.compile(r"Reading rc options for '\w+' from (?P<file>\S{1,400}):$")


@dataclass(frozen=True)
class Excerpt:
    """The first error of a log."""

    line: int
    """Number of the root line, from 1."""
    what: str
    """The root line: what the tool that failed says."""
    action: str
    """What Bazel was doing, where Bazel says so."""
    where: str
    """The BUILD file and line, where Bazel names them."""
    command: str
    """The command of the failed action, if the log has it."""
    lines: tuple[str, ...]
    """The root line and what follows it."""
    last: int
    """Number of the last line that belongs to this error."""


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
    ending: str = ""
    """Its last line that says something."""

    @property
    def recognised(self) -> bool:
        """Whether anything is known."""
        return bool(self.matches or self.harmless)

    @property
    def understood(self) -> bool:
        """Whether the root error is of a kind that is known, and not only of a known form."""
        # What is harmless elsewhere, and a failure by a fact of this build, is known as well.
        known = {"root", "harmless"}
        return any(match.explains and match.entry.rank in known for match in self.matches)


@dataclass(frozen=True)
class FailureRecord:
    """What one run said of its failure; the stage that saw it hands it on with its error.

    The stage decides by this record, and people are shown the same record: the log is
    not read a second time.
    """

    excerpt: Excerpt | None
    """The root error; None if the run complained of nothing."""
    match: Match | None
    """What is known of it, the most particular first."""

    @property
    def disk_is_full(self) -> bool:
        """Whether the run failed because there was no room for a file."""
        return self.match is not None and "disk-full" in self.match.entry.id


def diagnose(name: str, listener: Listener = SILENCE) -> Diagnosis:
    """Say what the log `name` shows; ``-`` is standard input.

    Raises RecipeError if it cannot be read.
    """
    with log.open_log(name, listener) as stream:
        return read(stream)


def read_failure(log: Path, start: int, *, killed: bool, died: bool) -> FailureRecord:
    """Read what the last run wrote: the part of `log` from byte `start` on.

    Not everything leaves a line: `killed` says that the kernel killed programs meanwhile, `died`
    that Bazel's server did not come to its end.
    """
    with log.open("rb") as text:
        text.seek(start)
        found = read(text)
    match = next((match for match in found.matches if match.explains), None)
    # A line that says why counts for more than what the kernel counted, a general one for less.
    if (killed or died) and (match is None or match.entry.rank != "root"):
        family = family_by_id(OUT_OF_MEMORY if killed else SERVER_DIED)
        advice = tables.advice(family, {})
        match = Match(family, 0, "", explains=True, certain=killed, advice=advice)
    return FailureRecord(found.first, match)


def read(stream: LogStream) -> Diagnosis:
    """Read a log to its end."""
    kept = log.read(stream)
    # Before the complaints: a fact of the build rules out causes of another platform.
    known = facts.read_facts([line.text for line in kept.lines])
    around = _Surroundings(kept.lines, known)
    search = Search(kept.lines, complaints.find(kept.lines, known))
    root = search.root()
    matches = around.matches_of_root(root) if root else []
    harmless: dict[str, Match] = {}
    root_text = "\n".join(
        ([kept.lines[root.at].message] if root else []) + [match.cause for match in matches]
    )
    for complaint in search.complaints:
        name = complaint.family.id
        # A remark that warned of what then failed is not harmless. It names a variable, http_proxy,
        # and a finding "a proxy".
        subjects = (
            word.removeprefix("http_")
            for word in _SUBJECT.findall(kept.lines[complaint.at].message)
        )
        warned = any(subject in root_text for subject in subjects)
        if complaint.rank == "harmless" and not warned:
            # The first line of each kind; a log may have thousands of them.
            if name not in harmless:
                harmless[name] = replace(around.match(complaint), certain=False)
        # Wrappers and summaries only repeat that something failed.
        elif complaint is not root and complaint.rank in {"root", "weak", "harmless"}:
            seen = {match.entry.id for match in matches}
            if name not in seen and len(seen) <= MOST_MATCHES:
                # Which package was compiled belongs to what its compiler says.
                named = name in PACKAGE_BUILDS
                matches += around.matches_of_root(complaint) if named else [around.match(complaint)]
    return Diagnosis(
        first=around.excerpt(root) if root else None,
        matches=tuple(matches[:MOST_MATCHES]),
        harmless=tuple(harmless.values()),
        lines=kept.count,
        ending=next(
            (shorten(last_line) for line in kept.lines[::-1] if (last_line := line.text.strip())),
            "",
        ),
    )


_SUBJECT = re.compile(
    r"https?://[^\s\])]{8,300}|(?<![\w/])(?:/[\w.+-]+){4,}"
    r"|\b(?:NFS|http_proxy|lib[\w+-]+\.so[\d.]*|[A-Z]{2,}_[A-Z_]{3,})\b"
)
"""What a line is about: an address, a path, a library, a variable, a file system, a proxy."""


class _Surroundings:
    """The lines of a log, read for what they say around a complaint."""

    def __init__(self, lines: Sequence[Line], known: Facts) -> None:
        self.lines = lines
        self.known = known

    def match(
        self,
        complaint: Complaint,
        family: Family | None = None,
        parameters: Mapping[str, str] | None = None,
    ) -> Match:
        """Return what is known of a line: the most particular reading, or one that explains it."""
        line = self.lines[complaint.at]
        entry = family or complaint.family
        found = complaint.readings[0].parameters if parameters is None else parameters
        known = self.known
        values = {
            **found,
            "line": line.message,
            "system": known.system or "unknown",
            "elsewhere": known.elsewhere,
            "gpu": "a GPU" if known.gpu else "",
            "runs": known.python,
            "speaker": self.speaker(complaint.at),
        }
        # Versions are compared in pairs, which takes time: only for a sentence that says it.
        if "{conflict}" in entry.cause:
            below = self.lines[complaint.at + 1 : complaint.at + CONFLICT_LINES]
            values["conflict"] = tables.conflicting_rows("\n".join(each.text for each in below))
        if "{official}" in entry.cause:
            asked = found.get("requirement", "")
            platform = "64-bit ARM" if known.arm else known.system
            values["official"] = tables.official_wheels(asked, known.python, platform)
            values["bits"] = "32" if known.narrow else ""
        return Match(
            entry=entry,
            line=line.number,
            text=line.text,
            explains=family is not None,
            certain=entry.certain and self.known.proves(entry),
            parameters=values,
            advice=tables.advice(entry, values),
        )

    def speaker(self, at: int) -> str:
        """Return whose output a line is: of the tools that lines near it name, the nearest."""
        near = range(max(0, at - SPEAKER_LINES), min(len(self.lines), at + SPEAKER_LINES))
        for each in sorted(near, key=lambda line: abs(line - at)):
            if name := tables.look_up("speaker", self.lines[each].message):
                return name
        return "unknown"

    def matches_of_root(self, root: Complaint) -> list[Match]:
        """Return what is known of the root, the most particular first."""
        matches = [
            self.match(
                root,
                reading.family,
                self._complete_parameters(reading.family, reading.parameters, root.at),
            )
            for reading in self._readings_by_speaker(root)
        ]
        # A particular failure without lines to type gets those of its family: a build that fails
        # shows the first match only.
        if len(matches) > 1 and not matches[0].advice:
            matches[0] = replace(matches[0], advice=matches[1].advice)
            matches[1] = replace(matches[1], advice=Advice())
        return matches

    def _readings_by_speaker(self, root: Complaint) -> Judged:
        """Return the readings of the root, without Bazel's of what another tool says."""
        if not tables.look_up("foreign_speaker", self.speaker(root.at)):
            return root.readings
        own = tuple(
            each
            for each in root.readings
            if each.family.certain or not each.family.id.startswith("bazel-")
        )
        general = Recognition(
            family_by_id("general-error"), {"message": self.lines[root.at].message}
        )
        return own or (general,)

    def _complete_parameters(
        self, family: Family, found: Mapping[str, str], at: int
    ) -> dict[str, str]:
        """Complete the parameters of a reading from the lines around the root.

        Some tools name the symbol, or the header, on the line after their message; a traceback says
        before it who asked for what is missing.
        """
        parameters = dict(found)
        # The innermost frame of a traceback is its last, right above the exception.
        above = self.lines[max(0, at - ABOVE_LINES) : at][::-1]
        below = self.lines[at + 1 : at + 1 + DETAIL_LINES]
        for pattern, around in ((family.detail_regex, below), (family.above_regex, above)):
            for line in around if pattern else ():
                if pattern and (detail := pattern.search(line.text)):
                    add_groups(parameters, detail)
        option = parameters.get("option") or parameters.get("config")
        if option and family.id.startswith("bazel-"):
            # With --announce_rc, Bazel shows a file on one line, and its options on the next.
            option_regex = re.compile(rf"(?:^|[ =]){re.escape(option)}(?:$|[ =])")
            for announced, options in pairwise(self.lines):
                file = _RC_FILE.search(announced.text)
                if file and option_regex.search(options.text):
                    return {**parameters, "given": file["file"]}
        return parameters

    def excerpt(self, root: Complaint) -> Excerpt:
        """Return what belongs to the root."""
        at, line = root.at, self.lines[root.at]
        action, where, command = self._failed_action(at)
        # A root that is an error of Bazel itself names the BUILD file.
        own = rule("build_file").match(line.message)
        following = [line.text]
        for after in self.lines[at + 1 : at + AFTER]:
            if rule("next_message").match(after.message):
                break
            following.append(after.text)
        # The root line itself stays, whatever it holds.
        while len(following) > 1 and not following[-1].strip():
            following.pop()
        text = line.text.strip()
        if len(text) > SHOWN_OF_ROOT:
            # From where its message begins; of a short end, more of what stands before it.
            message = root.family.regex.search(text)
            start = min(message.start() if message else 0, len(text) - SHOWN_OF_ROOT)
            text = ("… " if start else "") + text[start:]
        return Excerpt(
            line=line.number,
            what=shorten(text, SHOWN_OF_ROOT),
            action=shorten(action),
            where=shorten(own["where"] if own else where),
            command=command,
            lines=tuple(map(shorten, following)),
            last=line.number + len(following) - 1,
        )

    def _failed_action(self, at: int) -> tuple[str, str, str]:
        """Return what the failed action was doing, its BUILD file and line, and its command.

        Each is empty where the log does not say it.
        """
        for place in self._report_lines(at):
            if reported := rule("failed_action").match(self.lines[place].message):
                below = [line.text for line in self.lines[place : place + LONGEST_COMMAND]]
                command = _COMMAND.search("\n".join(below))
                shown_command = command[0].strip() if command else ""
                return reported["what"], reported["where"] or "", shown_command
        return "", "", ""

    def _report_lines(self, at: int) -> Iterator[int]:
        """Yield where Bazel may report the failed action: before what it printed, or after it."""
        for before in range(at, max(-1, at - REACH), -1):
            yield before
            # The output of an action that did not fail: what is above belongs to others.
            if before < at and self.lines[before].message.startswith("INFO: From "):
                break
        yield from range(at + 1, min(len(self.lines), at + REACH))
