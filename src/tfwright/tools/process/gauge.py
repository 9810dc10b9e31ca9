"""What a build takes of memory and processors, watched from outside while it runs."""

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tfwright.tools.process import capacity

SECONDS = 1.0
"""Between two looks. Each takes some milliseconds; a program that ends in between is remembered as it was at the last."""
_PROCESSES = Path("/proc")


class Gauge:
    """The most that was seen."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self.action = 0
        """Bytes that one action took, with all the programs that it had started; 0 where there is no /proc (macOS)."""
        self.holds = 0
        """Bytes that the server and all its actions held at the last look."""
        self.pressure = 0.0
        """For how many percent of ten seconds everything waited for memory."""
        self.together = 0
        """Bytes that the server and all its actions held at one moment."""
        self._spent: dict[int, float] = {}
        self._before: dict[int, float] = {}

    @property
    def cpu(self) -> float:
        """Seconds of processor time that the server, and the programs of its actions that have ended, took meanwhile."""
        return sum(spent - self._before.get(server, 0.0) for server, spent in self._spent.items())

    def begin(self, server: int | None) -> None:
        """Note what a server has taken before."""
        if server is not None:
            self._before[server] = processor(server)

    def look(self, server: int | None) -> None:
        """Look once at what the process `server` runs."""
        self.pressure = max(self.pressure, capacity.pressure())
        if server is not None:
            self.action = max([self.action, *actions(server)])
            self.holds = held(server)
            self.together = max(self.together, self.holds)
            self._spent[server] = processor(server)


@contextmanager
def watching(server: Callable[[], int | None]) -> Iterator[Gauge]:
    """Watch, until the block ends, what the process that `server` names runs; it may be another one each time."""
    gauge, done = Gauge(), threading.Event()
    gauge.begin(server())

    def watch() -> None:
        while not done.wait(SECONDS):
            gauge.look(server())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield gauge
    finally:
        done.set()
        thread.join()


def actions(server: int) -> list[int]:
    """Return the bytes that each child of a process, with its own children, has taken at its highest.

    Where programs of one action have their peaks at different times the sum is an upper bound.
    """
    children = _children()
    return [sum(map(_peak, _family(child, children))) for child in children.get(server, ())]


def held(server: int) -> int:
    """Return the bytes that a process and all that come from it hold now; what they share counts for each."""
    return sum(map(_resident, _family(server, _children())))


def processor(server: int) -> float:
    """Return the seconds of processor time that a process has taken, with those of its children that have ended; 0 if it is gone."""
    # User and system time, first its own, then its children's: fields 14 to 17 of proc_pid_stat(5).
    told = _read(_PROCESSES / str(server) / "stat").rpartition(")")[2].split()
    return sum(map(int, told[11:15])) / os.sysconf("SC_CLK_TCK")


def _resident(process: int) -> int:
    """Return the bytes that a process has in memory."""
    told = _read(_PROCESSES / str(process) / "statm").split()
    return int(told[1]) * os.sysconf("SC_PAGE_SIZE") if told else 0


def _children() -> dict[int, list[int]]:
    """Return the children of every process."""
    found: dict[int, list[int]] = {}
    for path in _PROCESSES.glob("[0-9]*/stat"):
        # The name, in brackets, may hold anything; the state and the parent stand behind it.
        told = _read(path).rpartition(")")[2].split(maxsplit=2)
        if told:
            found.setdefault(int(told[1]), []).append(int(path.parent.name))
    return found


def _family(process: int, children: dict[int, list[int]]) -> Iterator[int]:
    """Yield a process and all that come from it."""
    yield process
    for child in children.get(process, ()):
        yield from _family(child, children)


def _peak(process: int) -> int:
    """Return the most bytes that a process has held in memory; 0 for one that has ended."""
    found = re.search(
        r"^VmHWM:\s+(\d+) kB", _read(_PROCESSES / str(process) / "status"), re.MULTILINE
    )
    return int(found[1]) * 1024 if found else 0


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
