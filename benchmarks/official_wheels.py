"""Writes src/tfwright/facts/wheels.toml: what the official wheels need, as `invoke inspect` proves it.

    python benchmarks/official_wheels.py --index https://INDEX/simple [--kept FOLDER]

Of each release line the newest version counts. One wheel for Linux on x86-64 is downloaded and read, the
one for the newest Python: the others of its release are compiled with the same options. Which Pythons
and platforms a version has is read from the names of its files. 26 GB are downloaded and removed again,
which takes about fifteen minutes; `--kept` keeps what inspect printed, and reads it the next time.
"""

import argparse
import datetime as dt
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests
import tomlkit
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "src/tfwright/facts/wheels.toml"
PROJECTS = ("tensorflow", "tensorflow-gpu", "tensorflow-cpu")
PLATFORMS = {
    "linux_x86_64": r"(many)?linux.*_x86_64",
    "linux_aarch64": r"(many)?linux.*_aarch64",
    "macos_arm64": r"macosx_.*_arm64",
    "macos_x86_64": r"macosx_.*_x86_64",
    "windows": "win_amd64",
}
HEADER = """\
# The official wheels of each release line, as benchmarks/official_wheels.py read them on the day below.
# `glibc`, `cpu` and `gpu` are what `invoke inspect` found in the wheel for Linux on x86-64; `cuda` and
# `cudnn` what the wheel states of itself. The other keys are the Pythons that a platform has wheels for.
"""

Files = list[dict[str, Any]]


def of_project(index: str, project: str) -> dict[Version, Files]:
    """Return the files of the newest version of each release line, the oldest line first."""
    accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
    found = requests.get(f"{index.rstrip('/')}/{project}/", headers=accept, timeout=60)
    found.raise_for_status()
    versions: dict[Version, Files] = {}
    for file in found.json()["files"]:
        try:
            _, version, _, tags = parse_wheel_filename(file["filename"])
        except InvalidWheelFilename:
            continue
        if not (version.is_prerelease or file.get("yanked")):
            versions.setdefault(version, []).append({**file, "tags": tags})
    newest = {version.release[:2]: version for version in sorted(versions)}
    return {version: versions[version] for version in newest.values()}


def pythons(files: Files, platform: str) -> Iterator[str]:
    """Yield the Pythons for which a version has a wheel for a platform, the oldest first."""
    tags = {
        tag.interpreter
        for file in files
        for tag in file["tags"]
        if re.fullmatch(platform, tag.platform)
    }
    for interpreter in sorted(tags, key=lambda name: (name[:3], len(name), name)):
        if found := re.fullmatch(r"cp(\d)(\d+)", interpreter):
            yield f"{found[1]}.{found[2]}"


def python_of(file: dict[str, Any]) -> list[int]:
    """Return the newest Python that takes a file for Linux on x86-64: [3, 12]."""
    *_, newest = pythons([file], PLATFORMS["linux_x86_64"])
    return [int(part) for part in newest.split(".")]


def inspected(file: dict[str, Any], kept: Path) -> dict[str, Any]:
    """Return what `invoke inspect` says of a wheel, which is downloaded and removed again."""
    said = next(
        kept.glob("-".join(file["filename"].split("-")[:2]) + "-*.json"),
        kept / f"{file['filename']}.json",
    )
    if not said.exists():
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
            said.write_text(done.stdout, "utf-8")
    report: dict[str, Any] = json.loads(said.read_text("utf-8"))
    return report


def row(project: str, version: Version, files: Files, report: dict[str, Any]) -> dict[str, Any]:
    """Return the row of one release line."""
    stated, needs = dict(report["stated"]), report["summary"]["needs"]
    found: dict[str, Any] = {"project": project, "version": str(version)}
    for platform, pattern in PLATFORMS.items():
        if names := list(pythons(files, pattern)):
            found[platform] = names
    found["glibc"] = needs["GLIBC"]["version"]
    found["cpu"] = needs["CPU"]["version"]
    if gpu := report["summary"]["architectures"]:
        found["gpu"] = gpu
        found["cuda"] = stated.get("cuda_version") or stated.get("cuda_version_number") or ""
        found["cudnn"] = stated.get("cudnn_version") or stated.get("cudnn_version_number") or ""
    return {name: value for name, value in found.items() if value}


def main() -> None:
    """Read all wheels, and write the table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    options.add_argument("--index", required=True)
    options.add_argument("--kept", type=Path, default=None)
    given = options.parse_args()
    document = tomlkit.parse(HEADER)
    document["read"] = dt.datetime.now(tz=dt.UTC).date().isoformat()
    rows = tomlkit.aot()
    with tempfile.TemporaryDirectory() as folder:
        kept = given.kept or Path(folder)
        for project in PROJECTS:
            for version, files in of_project(given.index, project).items():
                linux = [file for file in files if list(pythons([file], PLATFORMS["linux_x86_64"]))]
                if not linux:
                    continue
                newest = max(linux, key=python_of)
                print(newest["filename"], flush=True)
                rows.append(tomlkit.item(row(project, version, files, inspected(newest, kept))))
    document["wheel"] = rows
    TABLE.write_text(tomlkit.dumps(document), "utf-8")


if __name__ == "__main__":
    main()
