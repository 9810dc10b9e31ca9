"""Where a Bazel unpacks itself, and what it leaves there when the disk is full."""

import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tfwright.errors import Evidence, TfwrightError, ToolError
from tfwright.tools import disk, files
from tfwright.tools.process.running import is_running

REMEDY = (
    "Bazel does not run on this host: read what it says above, and choose another binary in the "
    "host file: [bazels]."
)


def explained(
    fault: TfwrightError, binary: Path, install_root: Path
) -> TfwrightError:
    """Return what an error of a Bazel's first start means; half-unpacked ones are removed.

    Bazel's own words are "No such file or directory" where the disk was full (seen with 0.26.1).
    """
    seen = fault.evidence
    # The log is in a temporary directory, which is gone when somebody reads this.
    evidence = Evidence(
        command=seen.command, status=seen.status, lines=seen.lines
    )
    if not isinstance(fault, ToolError):
        return fault
    lacking = _free(install_root) < _unpacked(binary)
    # Bazel never removes them, and each is some hundred megabytes.
    for leftover in _abandoned(install_root):
        files.remove(leftover)
    if lacking and any("embedded binaries" in line for line in seen.lines):
        return disk.full(
            f"{binary.name} could not unpack itself in {install_root}", evidence
        )
    return ToolError(fault.what, remedy=REMEDY, evidence=evidence)


def _free(place: Path) -> int:
    """Return the bytes that are left on the disk of a directory, which need not exist yet."""
    # The first start of a Bazel makes this directory.
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def _unpacked(binary: Path) -> int:
    """Return the bytes that a Bazel unpacks; 0 for a script in its place, which unpacks nothing."""
    try:
        with zipfile.ZipFile(binary) as packed:
            return sum(member.file_size for member in packed.infolist())
    except (OSError, zipfile.BadZipFile):
        return 0


def _abandoned(install_root: Path) -> Iterator[Path]:
    """Yield the half-unpacked Bazels of processes that have ended: ``<md5>.tmp.<process>``."""
    for path in (install_root / "install").glob("*.tmp.*"):
        process = path.name.rpartition(".")[2]
        if re.fullmatch("[0-9]+", process) and not is_running(int(process)):
            yield path
