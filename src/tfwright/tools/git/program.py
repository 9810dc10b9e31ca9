"""git, the program: the environment that it runs in, and what becomes of it.

Everything runs as a Command, so that `invoke plan` can show what changes a repository, with an
environment that knows neither the user's configuration nor the network.
"""

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tfwright.errors import (
    Evidence,
    FullDiskError,
    HostError,
    SupplyError,
    TfwrightError,
    ToolError,
    invoke,
)
from tfwright.printable import printable
from tfwright.tools import disk
from tfwright.tools.process import pipes
from tfwright.tools.process.command import Command, caller_variables, clean_environment
from tfwright.tools.process.pipes import Collected
from tfwright.tools.process.runner import TAIL_LINES

CONFIG = Path(__file__).with_name("gitconfig")
PROTOCOLS = "https:ssh:file"
"""The transports that run no program that a url names."""
PASSED_ON = (
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSH_AUTH_SOCK",
)
"""The caller's variables that a network command needs to get out, and to trust whom it reaches."""
OVERRIDING = {
    # Nothing that a repository names is run.
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "remote.origin.uploadpack": "git-upload-pack",
    # A changed file is seen by its time of change, and its bytes are compared as they are.
    "core.trustctime": "true",
    "core.checkStat": "default",
    "core.ignoreStat": "false",
    "core.fileMode": "true",
    "core.symlinks": "true",
    "core.autocrlf": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
}
"""Settings that win over those of a repository, which lies where others may have edited it."""
REPAIR = f"Run 'invoke vault --verify --repair', then '{invoke('fetch')}' with a network."
"""What helps where objects of a repository of ours are damaged."""
_DAMAGED = re.compile(
    r"hash mismatch|is corrupt|is empty|unable to (read|unpack)|bad (object|tree|signature)"
)
"""How git says that."""
FAILED = "git failed: "
"""How our errors about a git that failed begin."""
OLDEST = "2.32"
"""The first git that can be kept from the user's configuration, by GIT_CONFIG_GLOBAL."""


def variables(home: Path, **more: str) -> dict[str, str]:
    """Return the environment of every git of ours, with some variables more."""
    overriding = {"GIT_CONFIG_COUNT": str(len(OVERRIDING))}
    for number, (name, value) in enumerate(OVERRIDING.items()):
        overriding[f"GIT_CONFIG_KEY_{number}"] = name
        overriding[f"GIT_CONFIG_VALUE_{number}"] = value
    settled = {
        **overriding,
        # No transport at all: only commands with `network_variables()` reach a server.
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_CONFIG_GLOBAL": str(CONFIG),
        "GIT_CONFIG_NOSYSTEM": "1",
        # git would fetch what a partial mirror lacks in the middle of any command.
        "GIT_NO_LAZY_FETCH": "1",
        # A replaced object has the content of another under the pinned id.
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    return clean_environment(home, extra={**settled, **more})


def network_variables() -> dict[str, str]:
    """Return the variables of a command that may use the network; no other can reach it."""
    caller = caller_variables(PASSED_ON)
    return {**caller, "GIT_ALLOW_PROTOCOL": PROTOCOLS, "GIT_SSH_COMMAND": "ssh -o BatchMode=yes"}


@contextmanager
def gitpython() -> Iterator[None]:
    """Let GitPython be imported, which runs ``git version``, without the caller's configuration.

    A faulty one would end in an ImportError.
    """
    settled = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_PYTHON_REFRESH": "quiet",
    }
    before = {name: os.environ[name] for name in settled if name in os.environ}
    os.environ |= settled
    try:
        yield
    finally:
        for name in settled:
            del os.environ[name]
        os.environ |= before


def run(command: Command, most: int = pipes.LARGEST_OUTPUT) -> str:
    """Run git to its end and return what it printed; raise as `collect`."""
    return collect(command, most=most).decode("utf-8", "surrogateescape")


def collect(
    command: Command,
    lines: Iterable[str] = (),
    into: IO[bytes] | None = None,
    most: int = pipes.LARGEST_OUTPUT,
) -> bytes:
    """Run git to its end, with lines for its input; return its output, or write it to a file.

    Raises ToolError with what it complained about, SupplyError if it prints more than `most` bytes.
    """
    try:
        with lines_as_input(lines) as input_file:
            ended = pipes.collect(command, input_file, into, most)
    except OSError as fault:
        raise start_error(fault) from fault
    check_status(command, ended)
    return ended.printed


@contextmanager
def lines_as_input(lines: Iterable[str]) -> Iterator[IO[bytes]]:
    """Open a file with these lines, as the input of `collect`."""
    # A file and no pipe: git reads it at its own pace while its output is read here.
    with tempfile.TemporaryFile() as input_file:
        for line in lines:
            # The names of files need not be UTF-8.
            input_file.write(f"{line}\n".encode("utf-8", "surrogateescape"))
        input_file.seek(0)
        yield input_file


def start_error(fault: OSError) -> HostError:
    """Return the error for a git that does not start."""
    return HostError(
        f"git cannot be run: {fault.strerror}", remedy=f"Install git {OLDEST} or newer."
    )


def reason(fault: TfwrightError) -> str:
    """Return what git itself said, for an error that says the rest in its own words."""
    return fault.what.removeprefix(FAILED).removeprefix("fatal: ")


def check_status(command: Command, ended: Collected) -> None:
    """Raise ToolError for a git that failed, SupplyError for one that was ended.

    Each has the last of what it said.
    """
    complaint = [printable(line) for line in ended.complaint.splitlines()]
    if ended.excess:
        raise SupplyError(
            f"git was stopped: {ended.excess}",
            remedy="Do not use this repository, since no source is so large; or name a mirror in "
            "the host file: [mirrors].",
            evidence=Evidence(command=command.argv, lines=complaint[-TAIL_LINES:]),
        )
    if ended.status == 0:
        return
    faults = [line for line in complaint if line.startswith(("fatal:", "error:"))]
    fatal = faults[0] if faults else f"exit status {ended.status}"
    further = tuple(line for line in complaint[-TAIL_LINES:] if line.strip() and line != fatal)
    evidence = Evidence(command=command.argv, status=ended.status, lines=further)
    no_room = any("No space left on device" in line for line in complaint)
    # git's checkout does not say why it could not write.
    if no_room or disk.is_full(command.cwd):
        raise FullDiskError("git could not write", evidence)
    remedy = "Read what git said; the next build starts this stage again."
    raise ToolError(
        f"{FAILED}{fatal}", remedy=REPAIR if _DAMAGED.search(fatal) else remedy, evidence=evidence
    )
