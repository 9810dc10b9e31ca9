"""git commands that talk to a server, within bounds: a server may send without end.

git itself verifies each object by its id, refuses slow connections (`gitconfig`), follows no
redirect to another transport, and runs no hook or filter of what it receives. What it does not
bound is how much it takes: disk, memory and time.
"""

import os
import shutil
import socket
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from tfwright.errors import Evidence, SilentServerError, SupplyError
from tfwright.printable import printable
from tfwright.tools import git
from tfwright.tools.process import supervised
from tfwright.tools.process.command import Command
from tfwright.tools.process.runner import TAIL_LINES
from tfwright.tools.process.supervised import Allowance

LARGEST = 16 * 2**30
"""Bytes that one transfer may bring; TensorFlow with all its history has less than two GiB."""
LONGEST_ANSWER = 120.0
"""Seconds in which a server has to answer which commit a branch is at."""
LONGEST_PAUSE = 600.0
"""Seconds in which a transfer has to bring or report something. git itself gives a silent server
up, but over https only, and not one that sends what git throws away."""
CONNECT_SECONDS = 5.0
"""git itself waits minutes for a host that does not take a connection."""
HTTPS = 443
Hear = Callable[[Iterable[str]], list[str]]
"""Reads the lines of git's progress, and returns the other ones."""


def insist_on_host(address: str) -> None:
    """Raise SilentServerError unless the host of a repository takes connections.

    Only https without a proxy is tried: how a proxy or ssh gets to a host is their business.
    """
    host, port = host_of(address)
    if not host or any(
        os.environ.get(name)
        for both in ("https_proxy", "all_proxy")
        for name in (both, both.upper())
    ):
        return
    try:
        with socket.create_connection((host, port), CONNECT_SECONDS):
            pass
    # UnicodeError: a label of the name is longer than any may be.
    except (OSError, UnicodeError) as fault:
        raise SilentServerError(
            f"{host} cannot be reached: {printable(str(fault))}",
            remedy="Check the network, or name a mirror in the host file: [mirrors].",
        ) from fault


def host_of(address: str) -> tuple[str, int]:
    """Return the host and port of an https address; no host for any other address."""
    with suppress(ValueError):
        parts = urlsplit(address)
        if parts.scheme == "https" and parts.hostname:
            return parts.hostname, parts.port or HTTPS
    return "", 0


def fetch(
    command: Command, repository: Path, hear: Hear | None = None, given: IO[bytes] | None = None
) -> None:
    """Run a transfer into a repository.

    Raises ToolError with git's complaint, SupplyError for an excess.
    """
    # Half of the free space: git writes a received pack before it can judge it.
    free = shutil.disk_usage(repository).free
    allowance = Allowance(repository, min(LARGEST, free // 2), idle=LONGEST_PAUSE)
    _run(command, allowance, hear or _last, given)


def ask(command: Command, repository: Path) -> str:
    """Return what a server answers to a question that brings no object. Raises as `fetch`."""
    allowance = Allowance(repository, growth=supervised.OUTPUT, seconds=LONGEST_ANSWER)
    return _run(command, allowance, _last, None)


def _last(lines: Iterable[str]) -> list[str]:
    return list(deque((line.rstrip() for line in lines), TAIL_LINES))


def _run(command: Command, allowance: Allowance, hear: Hear, given: IO[bytes] | None) -> str:
    try:
        ended, said = supervised.run(command, allowance, hear, given)
    except OSError as fault:
        raise git.unusable(fault) from fault
    if ended.excess:
        _remove_unfinished(allowance.place)
        raise SupplyError(
            f"git was stopped: {ended.excess}",
            remedy="Do not use this server; name a mirror in the host file: [mirrors].",
            evidence=Evidence(command=command.argv, lines=said[-TAIL_LINES:]),
        )
    if ended.status != 0:
        raise git.failure(command, ended.status, [printable(line) for line in said])
    return ended.printed.decode("utf-8", "surrogateescape")


def _remove_unfinished(repository: Path) -> None:
    """Give the room of a pack back that will never be complete."""
    for path in repository.glob("objects/pack/tmp_*"):
        path.unlink(missing_ok=True)
