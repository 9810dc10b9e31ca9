"""What the catalogue says of a build that failed, and so whether and how it is tried again."""

from pathlib import Path

from tfwright.diagnosis import reader
from tfwright.diagnosis.catalogue import Entry, everything
from tfwright.diagnosis.reader import Match

OUT_OF_MEMORY = "host-out-of-memory"
SERVER_DIED = "bazel-server-died"


def cause(log: Path, start: int, *, killed: bool, died: bool) -> Match | None:
    """Return the known failure that explains the first error of a run, which begins at byte `start` of a log; None if none does.

    Not everything leaves a line: `killed` says that the kernel killed programs meanwhile, `died` that
    Bazel's server did not come to its end.
    """
    with log.open("rb") as text:
        text.seek(start)
        explaining = [match for match in reader.read(text).matches if match.explains]
    if explaining:
        return explaining[0]
    name = OUT_OF_MEMORY if killed else SERVER_DIED if died else ""
    return Match(_named(name), line=0, text="", explains=True) if name else None


def _named(name: str) -> Entry:
    return next(entry for entry in everything() if entry.id == name)
