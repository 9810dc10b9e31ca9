"""What is known of a failed run: whether another attempt helps, and what the user sees of it."""

from dataclasses import dataclass
from pathlib import Path

from tfwright.diagnosis import advice, reader
from tfwright.diagnosis.excerpt import Excerpt
from tfwright.diagnosis.facts import Facts
from tfwright.diagnosis.families import Family, everything
from tfwright.diagnosis.reader import Match

OUT_OF_MEMORY = "memory-compiler-killed"
SERVER_DIED = "memory-bazel-server-died"


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


def record(
    log: Path, start: int, *, killed: bool, died: bool, known: Facts | None = None
) -> FailureRecord:
    """Read what the last run wrote: the part of `log` from byte `start` on.

    Not everything leaves a line: `killed` says that the kernel killed programs meanwhile, `died`
    that Bazel's server did not come to its end. `known` are facts that the recipe states.
    """
    with log.open("rb") as text:
        text.seek(start)
        found = reader.read(text, known)
    match = next((match for match in found.matches if match.explains), None)
    # A line that says why counts for more than what the kernel counted, a general one for less.
    name = OUT_OF_MEMORY if killed else SERVER_DIED if died else ""
    if name and (match is None or match.entry.rank != "root"):
        match = Match(
            _named(name),
            line=0,
            text="",
            explains=True,
            certain=killed,
            advice=advice.of(_named(name), {}),
        )
    return FailureRecord(found.first, match)


def _named(name: str) -> Family:
    return next(family for family in everything() if family.id == name)
