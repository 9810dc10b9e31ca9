"""Programs whose output comes to us, and those that read what we give."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from tfwright.documents import filesystem
from tfwright.errors import Evidence, ToolError
from tfwright.tools.process.command import Command, clean_environment
from tfwright.tools.process.runner import child_process, terminate

LARGEST_OUTPUT = 2**30
"""Bytes that a program may print into our memory."""
LARGEST_COMPLAINT = 16 * 2**20
"""Bytes of its complaints that are read."""
PIECE = 1 << 16
FEED_SECONDS = 60.0


class Collected(NamedTuple):
    """What a program that came to its end had to say."""

    status: int
    """Exit status; negative for the number of the signal that ended it."""
    printed: bytes
    """Its standard output; empty where that went into a file."""
    complaint: str
    """Its standard error."""
    excess: str = ""
    """What it took too much of, if that is why it was ended."""


def collect(
    command: Command,
    input_file: IO[Any] | None = None,
    into: IO[bytes] | None = None,
    most: int = LARGEST_OUTPUT,
) -> Collected:
    """Run a program to its end and return what it wrote.

    `input_file` is the file that it reads, `into` one that takes its output. A program that prints
    more than `most` bytes is ended. Raises OSError if it cannot be started.
    """
    # Its errors are not read while its output is: a full pipe would stop it.
    with tempfile.TemporaryFile() as complaints:
        streams = (into or subprocess.PIPE, complaints, input_file or subprocess.DEVNULL)
        with child_process(command, *streams) as process:
            printed = bytearray()
            # To the end, or a piece more than is wanted.
            while process.stdout and len(printed) <= most and (p := process.stdout.read(PIECE)):
                printed += p
            if len(printed) > most:
                terminate(process)
            process.wait()
        complaints.seek(0)
        complaint = complaints.read(LARGEST_COMPLAINT).decode("utf-8", "replace")
    excess = f"it printed more than {most:,} bytes" if len(printed) > most else ""
    return Collected(process.returncode, bytes(printed[:most]), complaint, excess)


def run_with_input(
    argv: Sequence[str], text: str, seconds: float = FEED_SECONDS, cwd: Path = Path("/")
) -> None:
    """Run a program with `text` as its input; raise ToolError if it fails or takes too long."""
    # The user's own hook: it gets the home directory, but none of the caller's variables.
    command = Command(tuple(argv), cwd, clean_environment(filesystem.home()))
    pipe = subprocess.PIPE
    try:
        # communicate() writes and reads at once: a program that complains before it has
        # read all of a long text would otherwise block on a full pipe.
        with child_process(command, subprocess.DEVNULL, pipe, pipe) as process:
            _, complaint = process.communicate(text.encode(), timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise _hook_error(argv, type(fault).__name__, ()) from fault
    if process.returncode:
        lines = complaint.decode("utf-8", "replace").splitlines()[-5:]
        raise _hook_error(argv, f"exit status {process.returncode}", lines)


def _hook_error(argv: Sequence[str], why: str, lines: Sequence[str]) -> ToolError:
    return ToolError(
        f"{Path(argv[0]).name} did not take the notice: {why}",
        remedy="The notice is kept and sent again in the next night.",
        evidence=Evidence(command=tuple(argv), lines=tuple(lines)),
    )
