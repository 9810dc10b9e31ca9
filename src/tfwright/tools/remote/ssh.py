"""Builds on another machine over plain OpenSSH: no daemon, the user's own agent and known hosts.

The remote program has a terminal that ends with the connection, and so it ends with this process.
"""

import os
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfwright.tools.process import runner
from tfwright.tools.process.runner import Command

LOST = 255
"""Exit status of ssh itself: no connection, or it broke."""
ALIVE = (
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
)
"""A machine that is silent for 15 seconds is lost. ssh asks nothing: a build has no keyboard."""
PASSED_ON = ("HOME", "PATH", "SSH_AUTH_SOCK", "USER", "LOGNAME")


@dataclass(frozen=True)
class RemoteHost:
    """A machine that builds."""

    name: str
    address: str
    """As ssh takes it: ``user@host``, or a name of ~/.ssh/config."""
    directory: str
    """A checkout of tfwright there."""
    python: str = "python3"
    host_file: str = ""
    """The host file there; empty for the user's own."""
    wheelhouse: str = ""
    """Where wheels are there, to be brought here; empty where the directory is shared."""
    config: str = ""
    """A configuration file for ssh; empty for the user's own."""


@dataclass(frozen=True)
class RemoteBuild:
    """What became of a build."""

    seconds: float
    lost: bool
    """Whether the machine, or the way to it, is gone."""
    failure: str
    """Why the build failed; empty if it did not."""


def build(host: RemoteHost, recipe: str, options: tuple[str, ...], log: Path) -> RemoteBuild:
    """Build a recipe on a machine, to its end; what it prints is in `log`."""
    begun = time.monotonic()
    status = runner.attempt(build_command(host, recipe, options), log, remedy="Install OpenSSH.")
    seconds = time.monotonic() - begun
    if status == LOST or status < 0:
        return RemoteBuild(seconds, lost=True, failure=_last(log) or "the connection broke")
    if status != 0:
        return RemoteBuild(seconds, lost=False, failure=_failure(log, status))
    return RemoteBuild(seconds, lost=False, failure="")


def build_command(host: RemoteHost, recipe: str, options: tuple[str, ...]) -> Command:
    """Return the command that builds a recipe on a machine."""
    variables = (f"TFWRIGHT_HOST_FILE={host.host_file}",) if host.host_file else ()
    tfwright = (host.python, "tasks.py", "build", "--recipe", recipe, *options)
    program = shlex.join(("env", "TERM=dumb", *variables, *tfwright))
    script = f"cd {shlex.quote(host.directory)} && exec {program}"
    return _ssh(host, ("-tt",), script)


def bring(host: RemoteHost, to: Path, log: Path) -> None:
    """Copy wheels that are not here yet; nothing of the same name is overwritten.

    Raises ToolError if rsync fails.
    """
    to.mkdir(parents=True, exist_ok=True)
    way = shlex.join(("ssh", *_config(host), *ALIVE))
    source = f"{host.address}:{host.wheelhouse.rstrip('/')}/"
    options = ("--archive", "--ignore-existing", "--no-links", f"--rsh={way}")
    argv = ("rsync", *options, "--", source, f"{to}/")
    runner.run(Command(argv, to, _environment()), log, remedy="Look at what rsync says.")


def _ssh(host: RemoteHost, options: tuple[str, ...], script: str) -> Command:
    # After `--` ssh takes an address that begins with a dash for an address.
    argv = ("ssh", *_config(host), *ALIVE, *options, "--", host.address, script)
    return Command(argv, Path("/"), _environment())


def _config(host: RemoteHost) -> tuple[str, ...]:
    return ("-F", host.config) if host.config else ()


def _environment() -> Mapping[str, str]:
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}


def _failure(log: Path, status: int) -> str:
    """Return the line in which tfwright says what failed."""
    lines = runner.last_lines(log, 200)
    said = [line.strip() for line in lines if line.startswith("Failed")]
    return said[-1] if said else f"exit status {status}: {_last(log)}"


def _last(log: Path) -> str:
    lines = runner.last_lines(log, 1)
    return lines[0].strip() if lines else ""
