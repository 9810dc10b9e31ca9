"""What a build takes of memory and processors, watched from outside while it runs."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.tools.process import capacity

if TYPE_CHECKING:
    import psutil

SECONDS = 1.0
"""Between two looks. Each takes some milliseconds; a program that ends in between is remembered as
it was at the last."""
_PROCESSES = Path("/proc")


class Gauge:
    """The most that was seen."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self.action = 0
        """Bytes that one action took, with all the programs that it had started."""
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
        """Seconds of processor time of the server and of the programs of its actions that ended."""
        return sum(spent - self._before.get(server, 0.0) for server, spent in self._spent.items())

    def start(self, server: int | None) -> None:
        """Note what a server has taken before."""
        if server is not None:
            # A server that was there before has worked for other builds too.
            self._before[server] = cpu_seconds(server)

    def look(self, server: int | None) -> None:
        """Look once at what the process `server` runs."""
        # The kernel averages over ten seconds, so a look each second misses no peak.
        self.pressure = max(self.pressure, capacity.memory_pressure())
        if server is not None:
            self.action = max([self.action, *action_peaks(server)])
            self.holds = memory_in_use(server)
            self.together = max(self.together, self.holds)
            self._spent[server] = cpu_seconds(server)


@contextmanager
def polling(look: Callable[[], object], seconds: float) -> Iterator[None]:
    """Call `look` every few seconds, in a thread, until the block ends or it returns a true one."""
    done = threading.Event()

    def watch() -> None:
        while not (done.wait(seconds) or look()):
            pass

    # daemon: a look that hangs in /proc must not keep tfwright from ending.
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def watching(server: Callable[[], int | None]) -> Iterator[Gauge]:
    """Watch, until the block ends, what the process that `server` names runs.

    `server` is called before each look: Bazel may start another one during a build.
    """
    gauge = Gauge()
    gauge.start(server())
    with polling(lambda: gauge.look(server()), SECONDS):
        yield gauge


def action_peaks(server: int) -> list[int]:
    """Return the peak memory of each child of a process with its own children, in bytes.

    Where programs of one action have their peaks at different times the sum is an upper bound.
    """
    import psutil

    totals = dict[int, int]()
    # An action is a direct child of the server; what it starts comes behind it.
    action = dict[int, int]()
    for process in _process_tree(server):
        try:
            parent = process.ppid()
        except psutil.Error:
            continue
        if parent == server or parent in action:
            first = action[process.pid] = action.get(parent, process.pid)
            totals[first] = totals.get(first, 0) + _peak_memory_of(process)
    return list(totals.values())


def memory_in_use(server: int) -> int:
    """Return the bytes that a process and its descendants hold now.

    What they share counts for each.
    """
    return sum(_memory_of(process) for process in _process_tree(server))


def cpu_seconds(server: int) -> float:
    """Return the seconds of processor time of a process and those of its children that have ended.

    0 for a process that is gone.
    """
    import psutil

    try:
        times = psutil.Process(server).cpu_times()
    except psutil.Error:
        return 0.0
    # macOS does not say what the children took.
    ended = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return times.user + times.system + float(ended)


def _process_tree(server: int) -> "list[psutil.Process]":
    """Return a process and its descendants; each one comes behind its parent."""
    import psutil

    try:
        root = psutil.Process(server)
        # A compiler is a grandchild: the server starts a wrapper, and that starts gcc.
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def _memory_of(process: "psutil.Process") -> int:
    """Return the bytes that a process has in memory; 0 for one that has ended."""
    import psutil

    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _peak_memory_of(process: "psutil.Process") -> int:
    """Return the most bytes that a process has held in memory.

    Where the kernel keeps no record of that (macOS), it is what the process holds now.
    """
    try:
        text = (_PROCESSES / str(process.pid) / "status").read_text("utf-8", "replace")
    except OSError:
        return _memory_of(process)
    # The "high water mark" of resident memory; a zombie's status has no such line.
    found = re.search(r"^VmHWM:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
