"""Reading the text of a log."""

import io

from tfwright.diagnosis import reader
from tfwright.diagnosis.reader import Diagnosis, Excerpt, Match


def diagnose(log: str | bytes) -> Diagnosis:
    return reader.read(io.BytesIO(log.encode() if isinstance(log, str) else log))


def root_of(log: str | bytes) -> Excerpt:
    """Return the first error of a log, which has one."""
    root = diagnose(log).first
    assert root
    return root


def explaining(log: str | bytes) -> list[Match]:
    """Return the matches that explain the root error, of which there is at least one."""
    matches = [match for match in diagnose(log).matches if match.explains]
    assert matches
    return matches
