"""The official wheels of TensorFlow, from wheels.toml: what they need, as `invoke inspect` said."""

from dataclasses import dataclass
from pathlib import Path

from tfwright import facts
from tfwright.documents.release import Release

TABLE = Path(__file__).with_suffix(".toml")
PLATFORMS = {
    ("Linux", "x86_64"): "linux_x86_64",
    ("Linux", "aarch64"): "linux_aarch64",
    ("Darwin", "arm64"): "macos_arm64",
    ("Darwin", "x86_64"): "macos_x86_64",
    ("Windows", "AMD64"): "windows",
}
"""The columns of the table by system and machine."""


@dataclass(frozen=True)
class OfficialWheel:
    """The newest version of one release line; what was proved holds for Linux on x86-64."""

    project: str
    """``tensorflow``, ``tensorflow-gpu`` or ``tensorflow-cpu``."""
    version: str
    glibc: str
    """The oldest that its libraries load with."""
    cpu: str
    """The least CPU, one of CpuLevel."""
    gpu: tuple[str, ...] = ()
    """``sm_80`` is machine code, ``compute_80`` PTX, which the driver compiles."""
    cuda: str = ""
    cudnn: str = ""
    linux_x86_64: tuple[str, ...] = ()
    """The Pythons that this platform has wheels for, as the other four."""
    linux_aarch64: tuple[str, ...] = ()
    macos_arm64: tuple[str, ...] = ()
    macos_x86_64: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The release line, ``2.10``."""
        return str(Release.parse(self.version))

    def pythons(self, system: str, machine: str) -> tuple[str, ...]:
        """Return the Pythons that a platform has wheels for, or any machine of a system."""
        found: set[str] = set()
        for (its_system, its_machine), column in PLATFORMS.items():
            if system == its_system and machine in {"", its_machine}:
                found |= set(getattr(self, column))
        return tuple(sorted(found, key=lambda python: tuple(map(int, python.split(".")))))


def official() -> list[OfficialWheel]:
    """Return all rows, the newest release first."""
    rows = [OfficialWheel(**facts.frozen(row)) for row in facts.read(TABLE)["wheel"]]
    return sorted(rows, key=lambda row: Release.parse(row.version), reverse=True)


def read() -> str:
    """Return the day on which the package index was asked, ``2026-11-25``."""
    return str(facts.read(TABLE)["read"])
