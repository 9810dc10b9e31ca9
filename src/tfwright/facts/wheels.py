"""The official wheels of TensorFlow, from wheels.toml: what they need, as `invoke inspect` said."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.tags import Tag

from tfwright import facts
from tfwright.documents.release import ExactRelease, Release
from tfwright.facts import compatibility

TABLE = Path(__file__).with_suffix(".toml")
_PLATFORMS = {
    "manylinux_GLIBC_x86_64": "linux_x86_64",
    "manylinux_GLIBC_aarch64": "linux_aarch64",
    "macosx_MACOS_arm64": "macos_arm64",
    "macosx_MACOS_x86_64": "macos_x86_64",
    "win_amd64": "windows",
}
"""The columns of the table by what the platform tags of their wheels have in common."""


@dataclass(frozen=True)
class OfficialWheel:
    """Releases that need the same; what names no platform was proved for Linux on x86-64."""

    project: str
    """``tensorflow``, ``tensorflow-gpu`` or ``tensorflow-cpu``."""
    version: str
    """The newest of them."""
    glibc: str
    """The oldest that its libraries load with."""
    cpu: str
    """The least CPU, one of CpuLevel."""
    gpu: tuple[str, ...] = ()
    """``sm_80`` is machine code, ``compute_80`` PTX, which the driver compiles."""
    windows_gpu: tuple[str, ...] = ()
    """The same of the wheel for Windows."""
    macos_gpu: tuple[str, ...] = ()
    """The same of the wheel for Macs with Intel's processors."""
    aarch64_glibc: str = ""
    """As `glibc`, of the wheel for Linux on ARM."""
    cuda: str = ""
    cudnn: str = ""
    linux_x86_64: tuple[str, ...] = ()
    """The Pythons that this platform has wheels for, as the other four."""
    linux_aarch64: tuple[str, ...] = ()
    macos_arm64: tuple[str, ...] = ()
    macos_x86_64: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """The other releases."""
    unread: tuple[str, ...] = ()
    """Those that were not read: they get what the nearest release of their line needs."""

    @property
    def line(self) -> str:
        """The release line, ``2.10``."""
        return str(Release.parse(self.version))

    def tags(self) -> Iterator[Tag]:
        """Yield those of its wheels for all platforms and Pythons."""
        for platform, column in _PLATFORMS.items():
            machine = column.removeprefix("macos_")
            macos = compatibility.official_macos(Release.parse(self.version), machine)
            glibc = self.aarch64_glibc if machine == "linux_aarch64" else self.glibc
            named = platform.replace("GLIBC", glibc).replace("MACOS", macos).replace(".", "_")
            for python in getattr(self, column):
                yield Tag(f"cp{python.replace('.', '')}", "none", named)


def official() -> list[OfficialWheel]:
    """Return all rows, the newest release first."""
    rows = [OfficialWheel(**facts.freeze(row)) for row in facts.read(TABLE)["wheel"]]
    return sorted(rows, key=lambda row: ExactRelease.parse(row.version), reverse=True)


def date_read() -> str:
    """Return the day on which the package index was asked, ``2026-11-25``."""
    return str(facts.read(TABLE)["read"])
