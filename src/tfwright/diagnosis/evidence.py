"""What this host says about a suspected cause, before it is stated as fact."""

import platform
import shutil
from collections.abc import Callable
from pathlib import Path

from tfwright.diagnosis.catalogue import Entry, Fact
from tfwright.tools.process import capacity

_DRIVER = Path("/proc/driver/nvidia/version")
_XCODE = Path("/var/db/xcode_select_link")
"""Where `xcode-select` keeps its choice."""


def of(entry: Entry, place: Path) -> tuple[str, ...]:
    """Return what can be seen here of an entry's cause; `place` is where the build writes."""
    return tuple(text for fact in entry.evidence if (text := _LOOK[fact](place)))


def _disk(place: Path) -> str:
    usage = shutil.disk_usage(place)
    return f"{usage.free / capacity.GIB:.1f} of {usage.total / capacity.GIB:.1f} GiB are free on the disk of {place}"


def _memory(_: Path) -> str:
    kills = capacity.kills()
    killed = f"; the kernel has killed {kills} programs for want of it" if kills else ""
    return f"{capacity.memory() / capacity.GIB:.1f} GiB of memory are free, {capacity.cores()} processors{killed}"


def _glibc(_: Path) -> str:
    return " ".join(platform.libc_ver()).strip()


def _xcode(_: Path) -> str:
    return f"the selected Xcode is {_XCODE.readlink()}" if _XCODE.is_symlink() else ""


def _driver(_: Path) -> str:
    return (
        _DRIVER.read_text("ascii", "replace").splitlines()[0]
        if _DRIVER.is_file()
        else "no NVIDIA driver is loaded"
    )


_LOOK: dict[Fact, Callable[[Path], str]] = {
    "disk": _disk,
    "memory": _memory,
    "glibc": _glibc,
    "xcode": _xcode,
    "driver": _driver,
}
