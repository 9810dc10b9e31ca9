"""Where a Bazel unpacks itself, and what it leaves there when the disk is full."""

import json
import re
import shutil
import zipfile
from contextlib import suppress
from pathlib import Path

from tfwright.errors import FullDiskError, TfwrightError, ToolError
from tfwright.tools import files, json_text, trees
from tfwright.tools.process.file_lock import is_running

KEY = "install_base_key"
"""The file of a Bazel that holds the name of the directory into which it unpacks itself."""
REMEDY = (
    "Bazel does not run on this host: read what it says above, and choose another binary in the "
    "host file: [bazels]."
)


def first_start_error(fault: ToolError, binary: Path, install_root: Path) -> TfwrightError:
    """Return what an error of a Bazel's first start means; half-unpacked ones are removed.

    Bazel's own words are "No such file or directory" where the disk was full (seen with 0.26.1).
    """
    place = install_root
    # The first start of a Bazel makes this directory.
    while not place.exists():
        place = place.parent
    size = 0
    # A script in the place of a binary unpacks nothing.
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(binary) as packed:
        size = sum(member.file_size for member in packed.infolist())
    lacking = shutil.disk_usage(place).free < size
    # Bazel never removes what it unpacked by half, <md5>.tmp.<process>: some hundred megabytes.
    for leftover in (install_root / "install").glob("*.tmp.*"):
        process = leftover.name.rpartition(".")[2]
        if re.fullmatch("[0-9]+", process) and not is_running(int(process)):
            files.remove(leftover)
    if lacking and any("embedded binaries" in line for line in fault.evidence.lines):
        return FullDiskError(
            f"{binary.name} could not unpack itself in {install_root}", fault.evidence
        )
    return fault


def remove_damaged(binary: Path, install_root: Path) -> list[str]:
    """Remove unpacked forms of `binary` that hold other files than it; say how each differs.

    Bazel itself looks at the files' times only, which can be put back, and unpacks itself again
    when it starts.
    """
    memo = install_root / "verified.json"
    known = json_text.load_object(memo)
    found = list[str]()
    now: dict[str, str] = {}
    for unpacked in sorted((install_root / "install").glob(32 * "[0-9a-f]")):
        key = f"{binary.parent.name}/{unpacked.name}"
        glance = trees.state_digest(unpacked)
        if known.get(key) != glance and (wrong := _differing_files(binary, unpacked)):
            found += wrong
            files.remove(unpacked)
        else:
            now[key] = glance
    if now.items() - known.items():
        files.write(memo, json.dumps({**known, **now}, indent=1))
    return found


def _differing_files(binary: Path, unpacked: Path) -> list[str]:
    """Say which files of an unpacked Bazel differ from those packed in a binary, and how.

    None of another Bazel's; a script in the place of a binary has nothing to compare.
    """
    # Up to 2.x they are in a directory of their own.
    old = unpacked / "_embedded_binaries"
    root = old if old.is_dir() else unpacked
    try:
        with zipfile.ZipFile(binary) as packed:
            members = {
                member.filename: member for member in packed.infolist() if not member.is_dir()
            }
            # Its key is that of the directory: other Bazels are unpacked next to it.
            key = members.get(KEY)
            if key is None or packed.read(key).decode("ascii").strip() != unpacked.name:
                return []
            # What it did not unpack below its tools would take part in builds, too.
            found = (path for path, _ in trees.files_below(root / "embedded_tools"))
            names = sorted(path.relative_to(root).as_posix() for path in found)
            return [
                *(f"{name} was added" for name in names if name not in members),
                *(
                    f"{name} {'changed on disk' if (root / name).exists() else 'is missing'}"
                    for name, member in members.items()
                    if not files.has_content(root / name, packed.read(member))
                ),
            ]
    except (OSError, ValueError, zipfile.BadZipFile):
        return []
