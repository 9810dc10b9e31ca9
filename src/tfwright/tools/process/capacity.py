"""How much this machine, or the container we are in, can do at once."""

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GIB = 1 << 30


def usable_cores(root: Path = Path("/")) -> int:
    """Return how many processors this process may use; a part of one counts as one."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        # macOS binds no process to processors.
        allowed = os.cpu_count() or 1
    # Docker's --cpus sets a quota of time, which the affinity does not show: microseconds of each
    # period, and the period. Version 1 of control groups has a file for each of the two numbers.
    base = root / "sys/fs/cgroup"
    names = ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")
    quota = _read(base / "cpu.max") or " ".join(_read(base / name) for name in names)
    # No limit is "max" in version 2 and -1 in version 1: neither matches.
    if found := re.fullmatch(r"(\d+)\s+(\d+)\s*", quota):
        return min(allowed, max(1, math.ceil(int(found[1]) / int(found[2]))))
    return allowed


def available_memory(root: Path = Path("/")) -> int:
    """Return the bytes of memory that programs can still take; `root` holds /proc and /sys."""
    # Inside a container /proc/meminfo still describes the whole machine.
    left = (max(0, limit - used) for limit, used in _limits(root))
    return min([_read_meminfo(root, "MemAvailable"), *left])


def total_memory(root: Path = Path("/")) -> int:
    """Return the bytes of memory that there are, taken or not."""
    return min([_read_meminfo(root, "MemTotal"), *(limit for limit, _ in _limits(root))])


def oom_kills(root: Path = Path("/")) -> int:
    """Return how many programs of our control group the kernel has killed for want of memory.

    0 where it does not count.
    """
    for kind, folder in _folders(root):
        count = _read_number(folder / kind.events, "oom_kill")
        if count is not None:
            return count
    return 0


def memory_pressure(root: Path = Path("/")) -> float:
    """Return for how many percent of the last ten seconds everything waited for memory.

    0 where the kernel does not say.
    https://docs.kernel.org/accounting/psi.html explains the figures.
    """
    # The inmost group first: /proc/pressure speaks of the whole machine.
    own = [folder / "memory.pressure" for _, folder in _folders(root)][:1]
    for path in (*own, root / "proc/pressure/memory"):
        if found := re.search(r"^full avg10=([\d.]+)", _read(path), re.MULTILINE):
            return float(found[1])
    return 0.0


@dataclass(frozen=True)
class _Kind:
    """How one version of control groups calls its files."""

    base: str
    line: str
    """What stands in /proc/self/cgroup before our own group."""
    limit: str
    used: str
    cache: str
    """The line of memory.stat that counts what the kernel gives back when asked."""
    events: str


# Version 2 first: a hybrid host mounts both, and then limits memory in one of them only.
_KINDS = (
    _Kind(
        "sys/fs/cgroup",
        r"^0::/(.*)$",
        "memory.max",
        "memory.current",
        "inactive_file",
        "memory.events",
    ),
    _Kind(
        "sys/fs/cgroup/memory",
        r"^\d+:(?:\w+,)*memory(?:,\w+)*:/(.*)$",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
        "memory.oom_control",
    ),
)


def _limits(root: Path) -> Iterator[tuple[int, int]]:
    """Yield limit and use, in bytes, of each group that we are in and that has a limit."""
    for kind, folder in _folders(root):
        limit = _read(folder / kind.limit).strip()
        if limit.isdigit():  # "max" is none
            # The kernel counts the page cache as used, but drops it before it refuses memory.
            charged = _read_number(folder / kind.used) or 0
            cached = _read_number(folder / "memory.stat", kind.cache) or 0
            yield int(limit), charged - cached


def _folders(root: Path) -> Iterator[tuple[_Kind, Path]]:
    """Yield the directories of our control group and of those around it, the inmost first.

    In a container only the outermost, which is then the container's own, may be seen.
    """
    groups = _read(root / "proc/self/cgroup")
    for kind in _KINDS:
        own = re.search(kind.line, groups, re.MULTILINE)
        base = root / kind.base
        inner = base / own[1] if own else base
        for folder in (inner, *inner.parents):
            # The root group of a host has no limit file.
            if folder.is_relative_to(base) and (folder / kind.limit).is_file():
                yield kind, folder


def _read_meminfo(root: Path, name: str) -> int:
    """Return a figure of the kernel's; where it has none (macOS), the size of the whole memory."""
    kilobytes = _read_number(root / "proc/meminfo", f"{name}:")
    if kilobytes is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return kilobytes * 1024


def _read_number(path: Path, name: str = "") -> int | None:
    """Return the number after a name, or the only one, in a file of the kernel's; None without."""
    found = re.search(rf"^{name}\s*(\d+)", _read(path), re.MULTILINE)
    return int(found[1]) if found else None


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except OSError:
        return ""
