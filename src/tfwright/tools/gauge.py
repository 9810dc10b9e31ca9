"""What a build does to the memory, watched from outside while it runs."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tfwright.tools import capacity

SECONDS = 1.0
"""Between two looks. Each takes some milliseconds; a program that ends in between is remembered as it was at the last."""
_PROCESSES = Path("/proc")


class Gauge:
    """The most that was seen."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self.action = 0
        """Bytes that one action took, with all the programs that it had started; 0 where there is no /proc (macOS)."""
        self.pressure = 0.0
        """For how many percent of ten seconds everything waited for memory."""

    def look(self, server: int | None) -> None:
        """Look once at what the process `server` runs."""
        self.pressure = max(self.pressure, capacity.pressure())
        if server is not None:
            self.action = max([self.action, *actions(server)])


@contextmanager
def watching(server: Callable[[], int | None]) -> Iterator[Gauge]:
    """Watch, until the block ends, what the process that `server` names runs; it may be another one each time."""
    gauge, done = Gauge(), threading.Event()

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
    found = re.search(r"^VmHWM:\s+(\d+) kB", _read(_PROCESSES / str(process) / "status"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
