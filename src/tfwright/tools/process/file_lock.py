"""One build of a recipe at a time: a lock that dies with its holder, and with every program that it started."""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tfwright.errors import Evidence, HostError

HELD: list[int] = []
"""Descriptors of the locks that this process holds.

Programs inherit them: when a build is killed, its lock lasts until the last program that it started
is gone, and so the next build cannot meet one that still writes.
"""
GRACE_SECONDS = 20.0
"""How long the programs of a killed build may take to end."""


@contextmanager
def held(path: Path, command: str, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock file at `path` while the block runs.

    The kernel drops the lock when its holders end, however they end, so that no stale lock can
    stay. Raises HostError naming the holder if another process has it, unless `wait` is set.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as stream:
        _acquire(stream, path, wait=wait)
        stream.truncate(0)
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            "command": command,
        }
        stream.write(json.dumps(holder))
        stream.flush()
        HELD.append(stream.fileno())
        try:
            yield
        finally:
            HELD.remove(stream.fileno())
            stream.truncate(0)


def _acquire(stream: IO[str], path: Path, *, wait: bool) -> None:
    """Take the lock; wait for a living holder only if asked to, but for a dead one's programs in any case."""
    if wait:
        fcntl.flock(stream, fcntl.LOCK_EX)
        return
    deadline = time.monotonic() + GRACE_SECONDS
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(path)
            if _lives(holder) or time.monotonic() > deadline:
                raise _taken(path, holder) from None
            time.sleep(0.05)
        else:
            return


def _holder(path: Path) -> dict[str, Any]:
    """Return what the holder wrote about itself; nothing if it has not come to it yet."""
    try:
        holder = json.loads(path.read_text("utf-8"))
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def _lives(holder: dict[str, Any]) -> bool:
    """Say whether the process that wrote itself down as the holder is still there."""
    try:
        os.kill(int(holder["pid"]), 0)
    except (KeyError, ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


def _taken(path: Path, holder: dict[str, Any]) -> HostError:
    """Say who holds the lock."""
    who = (
        "process {pid} on {host} ({command}, since {since})".format_map(holder)
        if holder
        else "another process"
    )
    return HostError(
        f"This recipe is being built by {who}",
        remedy="Wait for it, or add --wait.",
        evidence=Evidence(where=str(path)),
    )
