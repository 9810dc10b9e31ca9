"""One command at a time: a lock that ends with its holder and every program that it started."""

import fcntl
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from pydantic import BaseModel

from tfwright.errors import HostError
from tfwright.printable import shell_word
from tfwright.tools import disk, json_text

HELD: list[int] = []
"""Descriptors of the locks that this process holds.

Programs inherit them: when a build is killed, its lock lasts until the last program that it started
is gone, and so the next build cannot meet one that still writes.
"""
GRACE_SECONDS = 20.0
"""How long the programs of a killed build may take to end."""


REMEDY = "Wait until that has ended, then start again."


class LockHeldError(HostError):
    """Another process holds the lock."""


class LockHolder(BaseModel):
    """What a holder writes into its lock file, for the message to whoever has to wait."""

    pid: int
    host: str
    """A path under build_out may be on a network disk, where a process id alone says little."""
    since: str
    command: str
    doing: str

    def __str__(self) -> str:
        command, doing = self.command, self.doing
        return f"process {self.pid} on {self.host} ('{command}', {doing}, since {self.since})"


@contextmanager
def locked(path: Path, doing: str, *, wait: bool = False, remedy: str = REMEDY) -> Iterator[None]:
    """Hold the lock file at `path` while the block runs; `doing` says what for.

    The kernel drops the lock when its holders end, however they end, so that no stale lock can
    stay. Raises LockHeldError naming the holder if another process has it, unless `wait` is set,
    and HostError if there can be no lock file.
    """
    with disk.as_host_error(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # O_NONBLOCK: a named pipe in its place is an error, and not waited for.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o666)
    # Without a buffer: what a full disk refuses is not tried a second time when it is closed.
    with os.fdopen(descriptor, "ab", buffering=0) as stream:
        _acquire(stream, path, wait=wait, remedy=remedy)
        # On a full disk the lock holds all the same; only its description is missing.
        with suppress(OSError):
            _write_holder(stream, doing)
        HELD.append(stream.fileno())
        try:
            yield
        finally:
            HELD.remove(stream.fileno())
            with suppress(OSError):
                os.ftruncate(stream.fileno(), 0)


def is_held(path: Path) -> bool:
    """Say whether a process, on whatever host, holds the lock at `path`."""
    try:
        with path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _write_holder(stream: IO[bytes], doing: str) -> None:
    """Write down who holds the lock, for the message to whoever has to wait."""
    os.ftruncate(stream.fileno(), 0)
    holder = LockHolder(
        pid=os.getpid(),
        host=socket.gethostname(),
        since=time.strftime("%Y-%m-%d %H:%M:%S"),
        command=_typed_command(),
        doing=doing,
    )
    stream.write(holder.model_dump_json().encode())


def _typed_command() -> str:
    """Return the command of this process as the user typed it."""
    program = Path(sys.argv[0])
    # `python -m invoke` shows the file that Python runs for it.
    name = program.parent.name if program.name == "__main__.py" else program.name
    return " ".join(map(shell_word, [name, *sys.argv[1:]]))


def _acquire(stream: IO[bytes], path: Path, *, wait: bool, remedy: str) -> None:
    """Take the lock.

    A living holder is waited for only if that is asked for, the programs of a dead one always.
    """
    if wait:
        # flock has no time limit; the kernel wakes us as soon as the holder is gone.
        fcntl.flock(stream, fcntl.LOCK_EX)
        return
    deadline = time.monotonic() + GRACE_SECONDS
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # None if the holder has not come to describe itself yet.
            holder = json_text.load_or_none(path, LockHolder)
            # The holder is dead, but its Bazel still has the lock: it ends within the grace.
            lives = holder is not None and is_running(holder.pid)
            if lives or time.monotonic() > deadline:
                who = holder or "another process"
                raise LockHeldError(
                    f"'{_typed_command()}' has to wait for {who}", remedy=remedy, where=path
                ) from None
            time.sleep(0.05)
        else:
            return


def is_running(process: int) -> bool:
    """Say whether a process of this number exists, of whatever user."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        # The process exists, and belongs to another user.
        pass
    return True
