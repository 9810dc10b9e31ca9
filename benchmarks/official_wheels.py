"""Writes src/tfwright/facts/wheels.toml: what the official wheels need, as `invoke inspect` proves it.

    python benchmarks/official_wheels.py --index https://INDEX/simple [--kept FOLDER] [--names]

Every release counts; neighbours of one line that need the same are one row. Which Pythons and platforms
a release has is read from the names of its files. A file of a few kilobytes only requires another project,
such as tensorflow-intel: then the Pythons of that project's files count.

Of each release one wheel for Linux on x86-64 is downloaded and read, the one for the newest Python: the
others are compiled with the same options. Files of an index never change, so what the table says already
is not read again; all of them are 77 GB. `--kept` keeps what inspect printed. With `--names` a release that
was not read gets what the nearest one of its line needs, and `unread` of its row names it; it is only read if
their sizes differ by more than a tenth. The same goes, with and without `--names`, for wheels for Windows,
for Macs with Intel's processors and for Linux on ARM.
"""

import argparse
import datetime as dt
import io
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import tomlkit
from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "src/tfwright/facts/wheels.toml"
PROJECTS = ("tensorflow", "tensorflow-gpu", "tensorflow-cpu")
BEHIND = ("tensorflow-cpu-aws", "tensorflow-intel", "tensorflow-macos")
"""The projects that files of a few kilobytes require."""
STUB = 100_000
"""Bytes that a wheel with TensorFlow in it is larger than."""
PLATFORMS = {
    "linux_x86_64": (r"(many)?linux.*_x86_64", ("Linux", "x86_64")),
    "linux_aarch64": (r"(many)?linux.*_aarch64", ("Linux", "aarch64")),
    "macos_arm64": (r"macosx_.*_arm64", ("Darwin", "arm64")),
    "macos_x86_64": (r"macosx_.*_(x86_64|intel)", ("Darwin", "x86_64")),
    "windows": ("win_amd64", ("Windows", "AMD64")),
}
"""The platform tags of a column, and how its system and machine name themselves in markers."""
OTHERS = {"windows_gpu": "windows", "macos_gpu": "macos_x86_64", "aarch64_glibc": "linux_aarch64"}
"""What is kept of wheels that are not for Linux on x86-64, and their platform."""
NEEDS = ("glibc", "cpu", "gpu", "cuda", "cudnn")
ALIKE = 0.1
"""By which part the sizes of wheels that need the same differ at most."""
HEADER = """\
# The official wheels, as benchmarks/official_wheels.py read them on the day below. `also` are the earlier
# releases that need the same. `glibc`, `cpu` and `gpu` are what `invoke inspect` found in the wheel for Linux
# on x86-64, `windows_gpu`, `macos_gpu` and `aarch64_glibc` in those for Windows, for Macs with Intel's
# processors and for Linux on ARM, or in one of their line whose size is the same within a tenth; `cuda` and
# `cudnn` are what the wheel states of itself. Of the releases under `unread` only names and sizes of the files
# were read. The other keys are the Pythons for which pip finds all of a release on a platform.
"""

Files = list[dict[str, Any]]
Row = dict[str, Any]


def of_project(index: str, project: str) -> dict[Version, Files]:
    """Return the files of each release, the oldest first."""
    accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
    found = requests.get(f"{index.rstrip('/')}/{project}/", headers=accept, timeout=60)
    found.raise_for_status()
    versions: dict[Version, Files] = {}
    for file in found.json()["files"]:
        try:
            _, version, _, tags = parse_wheel_filename(file["filename"])
        except InvalidWheelFilename:
            continue
        if not (version.is_prerelease or version.is_postrelease or file.get("yanked")):
            versions.setdefault(version, []).append({**file, "tags": tags})
    return dict(sorted(versions.items()))


def pythons(files: Files, platform: str) -> list[str]:
    """Return the Pythons for which a release has a wheel for a platform, the oldest first."""
    tags = {
        tag.interpreter
        for file in files
        for tag in file["tags"]
        if re.fullmatch(PLATFORMS[platform][0], tag.platform)
    }
    order = sorted(tags, key=lambda name: (name[:3], len(name), name))
    return [f"{it[1]}.{it[2]}" for name in order if (it := re.fullmatch(r"cp(\d)(\d+)", name))]


def newest(files: Files, platform: str) -> dict[str, Any] | None:
    """Return the file of a release for a platform and the newest Python."""
    mine = [(pythons([file], platform), file) for file in files]
    found = [(Version(names[-1]), file) for names, file in mine if names]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def same_line(one: Version, other: Version) -> bool:
    """Say whether two releases are of one line, as 2.10.0 and 2.10.1."""
    return one.release[:2] == other.release[:2]


def alike(file: dict[str, Any], other: dict[str, Any]) -> bool:
    """Say whether the sizes of two files are those of wheels that need the same."""
    small, large = sorted((file["size"], other["size"]))
    return bool(large - small <= ALIKE * large)


def required(file: dict[str, Any], platform: str) -> str:
    """Return the project behind a file that holds no TensorFlow itself; empty for any other."""
    if file["size"] > STUB:
        return ""
    system, machine = PLATFORMS[platform][1]
    answer = requests.get(file["url"], timeout=60)
    answer.raise_for_status()
    with zipfile.ZipFile(io.BytesIO(answer.content)) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        text = wheel.read(name).decode()
    for line in re.findall(r"(?m)^Requires-Dist: (.*?)\r?$", text):
        one = Requirement(line)
        here = {"platform_system": system, "platform_machine": machine, "extra": ""}
        if one.name in BEHIND and (one.marker is None or one.marker.evaluate(here)):
            return one.name
    raise ValueError(f"{file['filename']} requires no known project on {system} {machine}")


def columns(version: Version, files: Files, behind: Mapping[str, dict[Version, Files]]) -> Row:
    """Return the Pythons of each platform for which pip finds all of a release."""
    found: Row = {}
    for platform, (pattern, _) in PLATFORMS.items():
        mine = [
            file for file in files if any(re.fullmatch(pattern, t.platform) for t in file["tags"])
        ]
        # The files of a release for one platform are all made the same way.
        project = required(mine[0], platform) if mine else ""
        others = pythons(behind[project].get(version, []), platform) if project else None
        names = [it for it in pythons(mine, platform) if others is None or it in others]
        if names:
            found[platform] = names
    return found


def said(file: dict[str, Any], kept: Path) -> Path:
    """Return where it is kept what `invoke inspect` printed of a wheel."""
    return kept / f"{file['filename']}.json"


def inspected(file: dict[str, Any], kept: Path) -> dict[str, Any]:
    """Return what `invoke inspect` says of a wheel, which is downloaded and removed again."""
    report = said(file, kept)
    if not report.exists():
        with tempfile.TemporaryDirectory() as folder:
            wheel = Path(folder) / file["filename"]
            with (
                requests.get(file["url"], stream=True, timeout=60) as answer,
                wheel.open("wb") as target,
            ):
                for piece in answer.iter_content(1 << 20):
                    target.write(piece)
            command = [sys.executable, "-m", "invoke", "inspect", str(wheel), "--json"]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            report.write_text(done.stdout, "utf-8")
    found: dict[str, Any] = json.loads(report.read_text("utf-8"))
    return found


def needs(report: dict[str, Any]) -> Row:
    """Return what a wheel that was inspected needs."""
    stated, found = dict(report["stated"]), report["summary"]["needs"]
    row: Row = {"glibc": found["GLIBC"]["version"], "cpu": found["CPU"]["version"]}
    if gpu := report["summary"]["architectures"]:
        row["gpu"] = gpu
        row["cuda"] = stated.get("cuda_version") or stated.get("cuda_version_number") or ""
        row["cudnn"] = stated.get("cudnn_version") or stated.get("cudnn_version_number") or ""
    return {name: value for name, value in row.items() if value}


def read_already() -> dict[tuple[str, str], Row]:
    """Return the rows of the table, by project and release."""
    table = tomllib.loads(TABLE.read_text("utf-8"))["wheel"]
    return {
        (row["project"], version): row
        for row in table
        for version in (row["version"], *row.get("also", ()))
    }


class OtherWheels:
    """What a project's wheels for another platform need, of which one column is kept."""

    def __init__(self, column: str, behind: Mapping[str, dict[Version, Files]], kept: Path) -> None:
        """Take the projects that small files require, and where reports are kept."""
        self.column, self.behind, self.kept = column, behind, kept
        self.platform = OTHERS[column]
        self.read: list[tuple[Version, dict[str, Any], Any]] = []

    def need(self, version: Version, files: Files, known: Row) -> Row:
        """Return the column of a release, which is read if no other of its size was."""
        file = newest(files, self.platform)
        if file and (project := required(file, self.platform)):
            file = newest(self.behind[project].get(version, []), self.platform)
        if file is None:
            return {}
        found = known.get(self.column)
        for other, its_file, need in self.read if found is None else ():
            if same_line(other, version) and alike(file, its_file):
                found = need
        if found is None:
            print(file["filename"], flush=True)
            summary = inspected(file, self.kept)["summary"]
            arm = self.platform == "linux_aarch64"
            found = summary["needs"]["GLIBC"]["version"] if arm else summary["architectures"]
        self.read.append((version, file, found))
        return {self.column: found}


@dataclass
class Release:
    """A release of a project."""

    version: Version
    files: Files
    file: dict[str, Any]
    """For Linux, and the one that is read."""
    names: Row
    """The Pythons by platform."""
    read: Row | None
    """Its needs, where it was read."""

    def nearest(self, releases: list["Release"]) -> "Release | None":
        """Return the nearest release of its line that was read, the later one of two."""
        line = [
            one
            for one in releases
            if one.read and same_line(one.version, self.version) and alike(one.file, self.file)
        ]
        micro = self.version.micro
        order = [(abs(one.version.micro - micro), -one.version.micro) for one in line]
        return line[order.index(min(order))] if line else None


def joined(project: str, releases: list[Release]) -> Iterator[Row]:
    """Yield the rows of a project."""
    rows: list[Row] = []
    for one in releases:
        near = one.nearest(releases)
        if near is None:
            continue
        needed = one.read or near.read or {}
        row = {"project": project, "version": str(one.version), **one.names, **needed}
        if one.read is None:
            row["unread"] = [str(one.version)]
        before = rows[-1] if rows else {}
        its_line = same_line(Version(before.get("version", "0")), one.version)
        apart = {"version", "also", "unread"}
        if its_line and all(before.get(name) == row.get(name) for name in {*before, *row} - apart):
            rows.pop()
            row["also"] = [*before.get("also", []), before["version"]]
            row["unread"] = [*before.get("unread", []), *row.get("unread", [])]
        rows.append(row)
    order = ("project", "version", "also", "unread", *PLATFORMS, *NEEDS, *OTHERS)
    for row in rows:
        # An empty list of GPU code says that it was looked for.
        empty = [name for name in row if not row[name] and not name.endswith("_gpu")]
        yield {name: row[name] for name in order if name in row and name not in empty}


def main() -> None:
    """Read all wheels, and write the table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    options.add_argument("--index", required=True)
    options.add_argument("--kept", type=Path, default=None)
    options.add_argument("--names", action="store_true")
    given = options.parse_args()
    already = read_already()
    behind = {project: of_project(given.index, project) for project in BEHIND}
    document = tomlkit.parse(HEADER)
    document["read"] = dt.datetime.now(tz=dt.UTC).date().isoformat()
    rows = tomlkit.aot()
    with tempfile.TemporaryDirectory() as folder:
        kept = given.kept or Path(folder)
        for project in PROJECTS:
            releases = list[Release]()
            windows, macos, arm = (OtherWheels(column, behind, kept) for column in OTHERS)
            for version, files in of_project(given.index, project).items():
                file = newest(files, "linux_x86_64")
                if file is None:
                    continue
                known = already.get((project, str(version)), {})
                was_read = known and str(version) not in known.get("unread", ())
                read = {name: known[name] for name in NEEDS if name in known} if was_read else None
                names = columns(version, files, behind)
                releases.append(Release(version, files, file, names, read))
            for one in releases:
                guessed = given.names and not said(one.file, kept).exists()
                if one.read is None and not (guessed and one.nearest(releases)):
                    print(one.file["filename"], flush=True)
                    one.read = needs(inspected(one.file, kept))
                near = one.nearest(releases)
                known = already.get((project, str(one.version)), {})
                if near and near.read and near.read.get("gpu"):
                    one.names |= windows.need(one.version, one.files, known)
                    # https://www.tensorflow.org/install/pip: GPUs of Macs only by this name, to 1.1
                    if project == "tensorflow-gpu":
                        one.names |= macos.need(one.version, one.files, known)
                one.names |= arm.need(one.version, one.files, known)
            for row in joined(project, releases):
                rows.append(tomlkit.item(row))
    document["wheel"] = rows
    TABLE.write_text(tomlkit.dumps(document), "utf-8")


if __name__ == "__main__":
    main()
