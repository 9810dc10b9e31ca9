"""No network: programs that run where there is none but loopback, so that what they do without one is proved."""

import os
import platform
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

from tfwright.tools.process.runner import Command

PROGRAM = Path(__file__).with_name("enclosure.py")
LISTENER = Path(__file__).parents[1] / "cache/netlisten.py"
_PYTHON = (sys.executable, "-I", "-S")
_ENTER = (*_PYTHON, str(PROGRAM))


def enclosed(command: Command) -> Command:
    """Return a command in a network of its own that has loopback and nothing else, and that its children inherit."""
    return replace(command, argv=(*_ENTER, *command.argv))


def listening(door: Path, port: int) -> tuple[str, ...]:
    """Return what a program is started with to reach, in its own network, the proxy at `door`."""
    return (*_PYTHON, str(LISTENER), str(door), str(port))


def beside(process: int, command: Command) -> Command:
    """Return a command in the network of a running process: the same command where that is ours too."""
    if _network(process) == _network(os.getpid()):
        return command
    return replace(command, argv=(*_ENTER, "--beside", str(process), *command.argv))


@cache
def obstacle() -> str | None:
    """Say why this system lets no program run without a network; None if it does. Tried once."""
    if platform.system() != "Linux":
        return f"{platform.system()} has no network namespaces"
    done = subprocess.run(  # noqa: S603 argv is a tuple, never a shell line
        enclosed(Command(("/bin/true",), Path("/"))).argv,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    return (
        None
        if done.returncode == 0
        else f"this system refuses a network namespace ({done.stderr.strip()})"
    )


def _network(process: int) -> str:
    """Return which network a process is in; empty where processes have no choice, or it is gone."""
    try:
        return str(Path(f"/proc/{process}/ns/net").readlink())
    except OSError:
        return ""
