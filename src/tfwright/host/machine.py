"""The machine under everything: system, C library, processor, memory, disks."""

import re
from pathlib import Path
from typing import NamedTuple

from tfwright.host.place import NOTHING, Place, Seen

GIB = 2**30
EXTENSIONS = ("sse4.1", "sse4.2", "avx", "f16c", "fma", "avx2", "avx512f")
"""Instruction sets that TensorFlow is built with, as gcc's ``-m`` flags name them."""
NETWORK = ("nfs", "nfs4", "cifs", "smbfs", "afpfs", "9p", "fuse.sshfs")
"""File systems on which Bazel's output base does not work;
https://bazel.build/remote/output-directories says why."""
WITHOUT_LINKS = ("vfat", "msdos", "exfat", "drvfs")
"""File systems that keep no symbolic links, of which Bazel's output base and a venv consist."""


class Disk(NamedTuple):
    """The disk that holds a path."""

    free: int
    """Bytes."""
    mount: str
    kind: str
    """Its file system, as the kernel names it; empty if that is not known."""
    options: tuple[str, ...]
    """How Linux mounted it: ``rw``, ``noexec``."""
    by: str

    def __str__(self) -> str:
        kind = self.kind or "an unknown file system"
        return f"{self.free / GIB:.0f} GiB free on {kind} at {self.mount}"


def release(place: Place) -> Seen:
    """Return the name and version of the distribution, or of macOS."""
    # PRETTY_NAME may stand without quotes, as the shell allows.
    if named := place.read("/etc/os-release").find(r'^PRETTY_NAME="?(.*?)"?$'):
        return named
    mac = place.ask("sw_vers", "-productVersion")
    return Seen(f"macOS {mac}", mac.by) if mac else NOTHING


def glibc(place: Place) -> Seen:
    """Return the version of glibc; nothing where the C library is another."""
    # Only glibc's getconf knows the name.
    return place.ask("getconf", "GNU_LIBC_VERSION").find(r"\Aglibc (.*)")


def processor(place: Place) -> Seen:
    """Return which of EXTENSIONS the processor has."""
    # x86 says "flags", ARM "Features".
    found = place.read("/proc/cpuinfo").find(r"^(?:flags|Features)\s*:(.*)$")
    found = found or place.ask("sysctl", "-n", "machdep.cpu.features", "machdep.cpu.leaf7_features")
    # Linux writes sse4_1 and macOS SSE4.1 and AVX1.0 for what gcc calls sse4.1 and avx.
    spelled = re.sub(r"sse4_([12])", r"sse4.\1", found.value.lower())
    words = spelled.replace("avx1.0", "avx").split()
    return Seen(" ".join(name for name in EXTENSIONS if name in words), found.by)


def memory(place: Place) -> Seen:
    """Return the bytes of memory that a build can be given."""
    if place.read("/proc/meminfo"):
        from tfwright.tools.process import capacity

        return Seen(
            str(capacity.available_memory(place.root)), "/proc/meminfo and the cgroup's limit"
        )
    return place.ask("sysctl", "-n", "hw.memsize")


def swap(place: Place) -> Seen:
    """Return the bytes of swap."""
    found = place.read("/proc/meminfo").find(r"^SwapTotal:\s+(\d+) kB")
    return Seen(str(int(found.value) * 1024), found.by) if found else NOTHING


def disk(place: Place, path: Path) -> Disk:
    """Look at the disk that holds a path, which need not be there yet."""
    there = place.shown_path(place.nearest_directory(path))
    # -P keeps a long device name from breaking the line in two.
    answer = place.ask("df", "-Pk", there)
    fields = answer.value.splitlines()[-1].split() if answer else []
    if len(fields) < len(("device", "blocks", "used", "free", "capacity", "mount")):
        return Disk(0, there, "", (), answer.by)
    # A mount point may hold blanks; it is the last column.
    mount = " ".join(fields[5:])
    return Disk(int(fields[3]) * 1024, mount, *_mounted_file_system(place, mount), answer.by)


def _mounted_file_system(place: Place, mount: str) -> tuple[str, tuple[str, ...]]:
    """Return the file system that is mounted at a place, the last one where several are, and how.

    Empty where it is not known; how it is mounted is known on Linux only.
    """
    # macOS has no /proc; its mount prints the kind in brackets.
    mounts = place.read("/proc/mounts").value
    if mounts:
        found = re.findall(rf"^\S+ {re.escape(mount)} (\S+) ?(\S*)", mounts, re.MULTILINE)
    else:
        found = re.findall(rf" on {re.escape(mount)} \((\w+)()", place.ask("mount").value)
    kind, options = found[-1] if found else ("", "")
    return kind, tuple(options.split(","))


def address_space(place: Place) -> Seen:
    """Return the bytes of address space that a process may have; nothing without a limit."""
    return place.read("/proc/self/limits").find(r"^Max address space +(\d+)")
