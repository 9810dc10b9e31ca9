"""How much this machine, or the container we are in, can do at once."""

import os
from pathlib import Path

GIB = 1 << 30
_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container's own limit stands, in cgroups of version 2 and 1."""


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory(root: Path = Path("/")) -> int:
    """Return the bytes of memory that programs can still be given; `root` is where /proc and /sys are found."""
    return min([_available(root), *_limits(root)])


def _available(root: Path) -> int:
    """Return what the kernel could hand out now; where it does not say (macOS), all there is."""
    try:
        lines = (root / "proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def _limits(root: Path) -> list[int]:
    """Return the limits that a container sets; ``max`` is none."""
    texts = [(root / path).read_text("ascii").strip() for path in _LIMITS if (root / path).is_file()]
    return [int(text) for text in texts if text.isdigit()]
