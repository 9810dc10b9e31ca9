"""A program that reads what it is given on its standard input."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tfwright.documents import account
from tfwright.errors import Evidence, ToolError
from tfwright.tools.process import environment
from tfwright.tools.process.command import Command
from tfwright.tools.process.runner import leashed

SECONDS = 60.0


def feed(argv: Sequence[str], text: str, seconds: float = SECONDS) -> None:
    """Run a program with `text` as its input; raise ToolError if it fails or takes too long."""
    # The user's own hook: it gets the home directory, but none of the caller's
    # variables.
    command = Command(tuple(argv), Path("/"), environment.clean(account.home()))
    pipe = subprocess.PIPE
    try:
        # communicate() writes and reads at once: a program that complains before it has
        # read all of a long text would otherwise block on a full pipe.
        with leashed(command, subprocess.DEVNULL, pipe, pipe) as process:
            _, complaint = process.communicate(text.encode(), timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise _failed(argv, type(fault).__name__, ()) from fault
    if process.returncode:
        lines = complaint.decode("utf-8", "replace").splitlines()[-5:]
        raise _failed(argv, f"exit status {process.returncode}", lines)


def _failed(argv: Sequence[str], why: str, lines: Sequence[str]) -> ToolError:
    return ToolError(
        f"{Path(argv[0]).name} did not take the notice: {why}",
        remedy="The notice is kept and sent again in the next night.",
        evidence=Evidence(command=tuple(argv), lines=tuple(lines)),
    )
