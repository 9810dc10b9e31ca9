"""Programs that talk to strangers, watched while they run, and ended when they take too much."""

import io
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from tfwright.tools import trees
from tfwright.tools.process import gauge
from tfwright.tools.process.command import Command
from tfwright.tools.process.runner import end, leashed

EVERY = 0.25
"""Seconds between two looks."""
MEMORY = 4 * 2**30
"""Bytes of memory that a program and its children may hold."""
OUTPUT = 16 * 2**20
"""Bytes that it may print."""

LinesRead = TypeVar("LinesRead")


@dataclass(frozen=True)
class Allowance:
    """What a program may take."""

    place: Path
    """The directory that it writes to."""
    growth: int
    """Bytes by which that may grow."""
    seconds: float = float("inf")
    idle: float = float("inf")
    """Seconds in which it has to write something there, or to report something."""
    memory: int = MEMORY
    output: int = OUTPUT


@dataclass(frozen=True)
class Supervised:
    """What became of a program."""

    status: int
    """Exit status; negative for the number of the signal that ended it."""
    printed: bytes
    """Its standard output."""
    excess: str
    """What it took too much of, if that is why it was ended."""


def run(
    command: Command,
    allowance: Allowance,
    read_lines: Callable[[Iterable[str]], LinesRead],
    given: IO[bytes] | None = None,
) -> tuple[Supervised, LinesRead]:
    """Run a program within an allowance, and pass the lines of its standard error on as they come.

    Raises OSError if it cannot be started.
    """
    # A file and not a pipe: nothing has to read it while the progress is read.
    with tempfile.TemporaryFile() as output:
        streams = (output, subprocess.PIPE, given or subprocess.DEVNULL)
        with leashed(command, *streams) as process, _watching(process, allowance, output) as course:
            # newline=None: git ends the lines of its progress with carriage returns.
            lines = io.TextIOWrapper(
                process.stderr or io.BytesIO(), "utf-8", "replace", newline=None
            )
            lines_read = read_lines(course.shortened(lines))
            process.wait()
        # The watcher looks four times a second: more than the limit may have come in
        # between.
        output.seek(0)
        printed = output.read(allowance.output)
    return Supervised(process.returncode, printed, course.excess), lines_read


class _Course:
    """How a program comes on."""

    def __init__(self, place: Path) -> None:
        self.begun = self.moved = time.monotonic()
        """When it was started, and when it last wrote or reported something."""
        self.before = self.held = _held(place)
        self.excess = ""

    def shortened(self, lines: IO[str]) -> Iterator[str]:
        """Yield lines in pieces of bounded length: a server chooses what git repeats of it."""
        # A line without an end would fill the memory.
        while line := lines.readline(4096):
            self.moved = time.monotonic()
            yield line


@contextmanager
def _watching(
    process: "subprocess.Popen[bytes]", allowance: Allowance, output: IO[bytes]
) -> Iterator[_Course]:
    """End the program in a thread of its own once it takes too much, and say of what."""
    course = _Course(allowance.place)
    over = threading.Event()

    def watch() -> None:
        while not over.wait(EVERY):
            course.excess = _excess(process.pid, allowance, output, course)
            if course.excess:
                end(process)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield course
    finally:
        over.set()
        watcher.join()


def _excess(pid: int, allowance: Allowance, output: IO[bytes], course: _Course) -> str:
    """Say what the program takes too much of; empty if nothing."""
    held = _held(allowance.place)
    now = time.monotonic()
    if held != course.held:
        course.held, course.moved = held, now
    if now - course.begun > allowance.seconds:
        return f"it took more than {allowance.seconds:,.0f} seconds"
    if now - course.moved > allowance.idle:
        return f"it brought nothing for {allowance.idle:,.0f} seconds"
    # The growth and not the size: a mirror that is updated has gigabytes already.
    if held - course.before > allowance.growth:
        return f"it wrote more than {allowance.growth:,} bytes"
    if gauge.held(pid) > allowance.memory:
        return f"it took more than {allowance.memory:,} bytes of memory"
    if output.seek(0, io.SEEK_END) > allowance.output:
        return f"it printed more than {allowance.output:,} bytes"
    return ""


def _held(place: Path) -> int:
    """Return the bytes of all files below a directory, in which the program is at work."""
    return sum(state.st_size for _, state in trees.files_below(place))
