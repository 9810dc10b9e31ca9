"""One build of a recipe at a time: a lock that dies with its holder."""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tfwright.errors import Evidence, HostError


@contextmanager
def held(path: Path, command: str, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock file at `path` while the block runs.

    The kernel drops the lock when the process ends, however it ends, so that no stale lock can
    stay. Raises HostError naming the holder if another process has it, unless `wait` is set.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise _taken(path) from None
        stream.truncate(0)
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S"), "command": command}
        stream.write(json.dumps(holder))
        stream.flush()
        yield
        stream.truncate(0)


def _taken(path: Path) -> HostError:
    """Say who holds the lock, as far as the holder has written it yet."""
    try:
        holder = json.loads(path.read_text("utf-8"))
        who = f"process {holder['pid']} on {holder['host']} ({holder['command']}, since {holder['since']})"
    except (ValueError, KeyError, TypeError):
        who = "another process"
    return HostError(f"This recipe is being built by {who}", remedy="Wait for it, or add --wait.", evidence=Evidence(where=str(path)))
