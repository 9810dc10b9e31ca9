"""git commands that talk to a server, within bounds: a server may send without end.

git itself verifies each object by its id, refuses slow connections (`gitconfig`), follows no
redirect to another transport, and runs no hook or filter of what it receives. What it does not
bound is how much it takes: disk, memory and time.
"""

import shutil
import socket
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import IO
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from tfwright.errors import SilentServerError
from tfwright.printable import printable
from tfwright.progress import Listener, Progress
from tfwright.tools.git import program
from tfwright.tools.git.repository import GitRepository
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
SILENT = "Check the network, or name a mirror in the host file: [mirrors]."
"""What to do about a server that does not answer."""
HTTPS = 443
MOST_OBJECTS = 10**12
"""What no repository has; progress that counts further is made up."""


def check_host(address: str) -> None:
    """Raise SilentServerError unless the host of a repository takes connections.

    Only https without a proxy is tried: how a proxy or ssh gets to a host is their business.
    """
    host, port = host_of(address)
    if not host or {"https", "all"} & getproxies_environment().keys():
        return
    try:
        with socket.create_connection((host, port), CONNECT_SECONDS):
            pass
    # UnicodeError: a label of the name is longer than any may be.
    except (OSError, UnicodeError) as fault:
        raise SilentServerError(
            f"{host} cannot be reached: {printable(getattr(fault, 'strerror', '') or str(fault))}",
            remedy=SILENT,
        ) from fault


def host_of(address: str) -> tuple[str, int]:
    """Return the host and port of an https address; no host for any other address."""
    with suppress(ValueError):
        parts = urlsplit(address)
        if parts.scheme == "https" and parts.hostname:
            return parts.hostname, parts.port or HTTPS
    return "", 0


def fetch_command(
    repository: GitRepository, *arguments: str, progress: bool = False, claiming: bool = True
) -> Command:
    """Return a transfer of nothing but what is asked for: no tags, no submodules, no FETCH_HEAD.

    `claiming` tells the server which commits are here, whose files it then takes to be here too.
    """
    return repository.command(
        *(() if claiming else ("-c", "fetch.negotiationAlgorithm=noop")),
        "fetch",
        "--progress" if progress else "--quiet",
        "--no-tags",
        "--no-write-fetch-head",
        "--no-recurse-submodules",
        *arguments,
        env=program.network_variables(),
    )


def fetch(
    repository: GitRepository,
    *arguments: str,
    listener: Listener | None = None,
    lines: Iterable[str] = (),
    claiming: bool = True,
) -> None:
    """Run the transfer that `fetch_command` returns, with lines for its input; tell how far it is.

    Raises ToolError with git's complaint, SupplyError for an excess.
    """
    command = fetch_command(
        repository, *arguments, progress=listener is not None, claiming=claiming
    )
    # Half of the free space: git writes a received pack before it can judge it.
    free = shutil.disk_usage(command.cwd).free
    allowance = Allowance(command.cwd, min(LARGEST, free // 2), idle=LONGEST_PAUSE)
    with program.lines_as_input(lines) as input_file:
        _run_transfer(command, allowance, listener, input_file)


def list_refs(repository: GitRepository, *arguments: str) -> str:
    """Return which names a server has. Raises as `fetch`."""
    command = repository.command("ls-remote", *arguments, env=program.network_variables())
    allowance = Allowance(repository.path, growth=supervised.OUTPUT, seconds=LONGEST_ANSWER)
    return _run_transfer(command, allowance)


def _run_transfer(
    command: Command,
    allowance: Allowance,
    listener: Listener | None = None,
    input_file: IO[bytes] | None = None,
) -> str:
    def read_lines(lines: Iterable[str]) -> list[str]:
        if listener:
            return _read_progress(lines, listener)
        return list(deque((line.rstrip() for line in lines), TAIL_LINES))

    try:
        ended = supervised.run(command, allowance, read_lines, input_file)
    except OSError as fault:
        raise program.start_error(fault) from fault
    if ended.excess:
        # The room of a pack that will never be complete.
        for path in allowance.place.glob("objects/pack/tmp_*"):
            path.unlink(missing_ok=True)
    program.check_status(command, ended)
    return ended.printed.decode("utf-8", "surrogateescape")


def _read_progress(lines: Iterable[str], listener: Listener) -> list[str]:
    """Read git's progress as it comes; return what else git said."""
    with program.gitpython():
        import git

    class GitProgress(git.RemoteProgress):
        def update(
            self, _code: int, done: str | float, total: str | float | None = None, message: str = ""
        ) -> None:
            # A server can send these lines too, with numbers that no float holds.
            counted = float(done or 0)
            whole = float(total or 0)
            if counted < MOST_OBJECTS and whole < MOST_OBJECTS:
                listener.progress(Progress(int(counted), int(whole) or None, "objects", message))

    progress = GitProgress()
    read_lines: Callable[[str], None] = progress.new_message_handler()
    for line in lines:
        read_lines(line.rstrip())
        for kept in (progress.other_lines, progress.error_lines):
            # A server can send lines without end.
            del kept[:-TAIL_LINES]
    return [*progress.other_lines, *progress.error_lines]
