"""Bazel's profile: Chrome's trace format, a JSON object with one event a line.

A killed Bazel leaves it without an end, so it is read line by line, as far as it goes.
"""

import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tfwright.tools import files, json_text

LARGEST_LINE = 1024 * 1024
LARGEST = 512 * 1024**2
"""Bytes of a profile that are read, unpacked: it comes out of a build."""
LONGEST_NAME = 400


@dataclass(frozen=True)
class Action:
    """An action of Bazel."""

    name: str
    seconds: float
    start: float = 0.0
    """Seconds since the profile began."""

    @property
    def end(self) -> float:
        """Seconds since the profile began."""
        return self.start + self.seconds


def read(path: Path) -> Iterator[Action]:
    """Yield the actions of a profile, plain or packed by gzip; what cannot be read is left out."""
    # A killed Bazel cuts its profile off in the middle of a block: what was read before it stays.
    with suppress(OSError, EOFError, zlib.error), files.open_unpacked(path) as stream:
        total = 0
        while (line := stream.readline(LARGEST_LINE)) and total <= LARGEST:
            total += len(line)
            # An event of another kind, or damage.
            with suppress(ValueError, LookupError, TypeError):
                event = json_text.parse(line.strip().rstrip(b","))
                name, start, seconds = event["name"], event["ts"] / 1e6, event["dur"] / 1e6
                sound = 0 <= start < 1e9 and 0 <= seconds < 1e9  # noqa: PLR2004 thirty years
                if event["cat"] == "action processing" and sound and isinstance(name, str):
                    yield Action(name[:LONGEST_NAME], seconds, start)
