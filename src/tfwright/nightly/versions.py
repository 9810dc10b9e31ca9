"""A wheel under its nightly version: the same files, with a local version that says what it is for.

Two wheels of TensorFlow 1.8.0 for different GPUs would have one name. The version is changed in the
name, in METADATA and in the bill of materials.
"""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.version import Version

from tfwright.documents import filesystem
from tfwright.errors import WheelError
from tfwright.tools import files, json_text
from tfwright.wheel import archive, rewriting
from tfwright.wheel.seal import build_record


def nightly_version(version: str, local: str, *, commit: str, epoch: int) -> str:
    """Return the version that a wheel gets.

    A followed commit makes a development version of its day: ``2.22.0.dev20261122+g0a1b2c3d4e``.
    The day is the commit's own, so that a build from the same commit has the same name.
    """
    base = Version(version)
    parts = [local] if local else []
    public = base.public
    if commit:
        day = filesystem.utc(epoch)
        # A development version sorts before its release.
        public = f"{base.base_version}.dev{day:%Y%m%d}"
        # "g" as in `git describe`: a local part of digits alone would be compared as a number.
        parts.insert(0, f"g{commit[:10]}")
    elif base.local:
        parts.insert(0, base.local)
    return f"{public}+{'.'.join(parts)}" if parts else public


def with_version(source: Path, folder: Path, version: str) -> Path:
    """Write the wheel at `source` under another version into `folder`; return its path.

    The same wheel and version give the same bytes. Raises WheelError for a damaged wheel.
    """
    project, old, rest = source.name.split("-", 2)
    target = folder / f"{project}-{version}-{rest}"
    with (
        archive.open_wheel(source) as wheel,
        files.replacing(target) as temporary,
        temporary.open("wb") as stream,
    ):
        info = archive.metadata_directory(wheel)
        before = info.removesuffix(".dist-info")
        now = f"{before.rpartition('-')[0]}-{version}"

        def renamed_member(name: str) -> str:
            """Put the new version into the two folders whose names hold one."""
            in_them = name.startswith((f"{before}.dist-info/", f"{before}.data/"))
            return name.replace(before, now, 1) if in_them else name

        rewriting.rewrite(
            wheel, stream, dict(_changed_files(wheel, info, old, version)), renamed_member
        )
    return target


def _changed_files(
    wheel: zipfile.ZipFile, info: str, old: str, version: str
) -> Iterator[tuple[str, bytes]]:
    """Yield the files that state the version, with the new one in them."""
    metadata = f"{info}/METADATA"
    head, blank, body = wheel.read(metadata).partition(b"\n\n")
    lines = head.split(b"\n")
    stated = [number for number, line in enumerate(lines) if line.startswith(b"Version:")]
    if len(stated) != 1:
        raise WheelError(
            f"METADATA of {wheel.filename} states {len(stated)} versions",
            remedy="Build the wheel again.",
            where=metadata,
        )
    # Only this line: the description below the blank line may quote a version, too.
    lines[stated[0]] = f"Version: {version}".encode()
    yield metadata, b"\n".join(lines) + blank + body
    bill = f"{info}/{build_record.BILL_NAME}"
    if bill in wheel.namelist():
        page = json_text.parse(wheel.read(bill))
        subject = page.get("metadata", {}).get("component", {})
        if subject.get("version") == old:
            subject["version"] = version
        if "purl" in subject:
            # A package URL needs its plus sign quoted.
            quoted = version.replace("+", "%2B")
            subject["purl"] = subject["purl"].replace(f"@{old}", f"@{quoted}")
        yield bill, (json.dumps(page, indent=1, sort_keys=True) + "\n").encode()
