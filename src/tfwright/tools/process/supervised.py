"""Programs that talk to strangers, watched while they run, and ended when they take too much."""

import io
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tfwright.tools import trees
from tfwright.tools.process import gauge
from tfwright.tools.process.command import Command
from tfwright.tools.process.pipes import Collected
from tfwright.tools.process.runner import child_process, terminate

EVERY = 0.25
"""Seconds between two looks."""
MEMORY = 4 * 2**30
"""Bytes of memory that a program and its children may hold."""
OUTPUT = 16 * 2**20
"""Bytes that it may print."""


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


def run(
    command: Command,
    allowance: Allowance,
    read_lines: Callable[[Iterable[str]], list[str]],
    input_file: IO[bytes] | None = None,
) -> Collected:
    """Run a program within an allowance, and pass the lines of its standard error on as they come.

    Those that `read_lines` returns are its complaint. Raises OSError if it cannot be started.
    """
    # A file and not a pipe: nothing has to read it while the progress is read.
    with tempfile.TemporaryFile() as output:
        streams = (output, subprocess.PIPE, input_file or subprocess.DEVNULL)
        with child_process(command, *streams) as process:
            watch = _Watch(process, allowance, output)
            # newline=None: git ends the lines of its progress with carriage returns.
            lines = io.TextIOWrapper(
                process.stderr or io.BytesIO(), "utf-8", "replace", newline=None
            )
            with gauge.polling(watch.end_if_excessive, EVERY):
                complaint = "\n".join(read_lines(watch.split_lines(lines)))
                process.wait()
        # The watcher looks four times a second: more than the limit may have come in between.
        output.seek(0)
        printed = output.read(allowance.output)
    return Collected(process.returncode, printed, complaint, watch.excess)


class _Watch:
    """What a program has taken, looked at while it runs."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", allowance: Allowance, output: IO[bytes]
    ) -> None:
        self._process, self._allowance, self._output = process, allowance, output
        self._begun = self._moved = time.monotonic()
        """When it was started, and when it last wrote or reported something."""
        self._before = self._held = trees.size(allowance.place)
        self.excess = ""

    def split_lines(self, lines: IO[str]) -> Iterator[str]:
        """Yield lines in pieces of bounded length: a server chooses what git repeats of it."""
        # A line without an end would fill the memory.
        while line := lines.readline(4096):
            self._moved = time.monotonic()
            yield line

    def end_if_excessive(self) -> bool:
        """End the program if it takes too much; return whether it did."""
        held, now, allowed = trees.size(self._allowance.place), time.monotonic(), self._allowance
        if held != self._held:
            self._held, self._moved = held, now
        if now - self._begun > allowed.seconds:
            self.excess = f"it took more than {allowed.seconds:,.0f} seconds"
        elif now - self._moved > allowed.idle:
            self.excess = f"it brought nothing for {allowed.idle:,.0f} seconds"
        # The growth and not the size: a mirror that is updated has gigabytes already.
        elif held - self._before > allowed.growth:
            self.excess = f"it wrote more than {allowed.growth:,} bytes"
        elif gauge.memory_in_use(self._process.pid) > allowed.memory:
            self.excess = f"it took more than {allowed.memory:,} bytes of memory"
        elif self._output.seek(0, io.SEEK_END) > allowed.output:
            self.excess = f"it printed more than {allowed.output:,} bytes"
        if self.excess:
            terminate(self._process)
        return bool(self.excess)
