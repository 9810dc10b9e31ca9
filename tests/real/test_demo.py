"""The demo from recipe to wheel by a real Bazel: the same bytes wherever, whenever and by whomever it is built."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.documents.recipe import RECIPES, ROOT
from tfwright.tools import files

pytestmark = pytest.mark.real

BAZELS = {
    "0.24.1": "e18e2877e18a447eb5d94f5efbec375366d82af6443c6a83a93c62657a7b1c32",
    "0.26.1": "6c50e142a0a405d3d8598050d6c1b3920c8cdb82a7ffca6fc067cb474275148f",
}
"""Digests of the Linux binaries, as npm has them."""


def recipe(version: str, folder: Path) -> Path:
    """Write the demo recipe with another Bazel."""
    text = (RECIPES / "demo.toml").read_text("utf-8")
    return make_file(
        folder / "demo.toml",
        text.replace("0.26.1", version).replace(BAZELS["0.26.1"], BAZELS[version]),
    )


def build(folder: Path, version: str, umask: int, **env: str) -> Path:
    """Build the demo below `folder` and return the wheel."""
    make_file(folder / "host.toml", f'build_out = "{folder}/out"\n')
    command = [sys.executable, "-m", "invoke", "build", "--recipe", str(recipe(version, folder))]
    environment = {**os.environ, "TFWRIGHT_HOST_FILE": str(folder / "host.toml"), **env}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, umask=umask, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def content(wheel: Path) -> dict[str, bytes]:
    """Return the files of a wheel without the two that say which Bazel made it, and with what digest."""
    with zipfile.ZipFile(wheel) as opened:
        return {
            name: opened.read(name)
            for name in opened.namelist()
            if not name.endswith(("/tfwright.json", "/RECORD"))
        }


def test_the_wheel_is_the_same_in_another_place_at_another_time_under_another_umask_and_locale(
    tmp_path: Path,
) -> None:
    first = build(tmp_path / "one", "0.26.1", 0o022)
    hostile = {
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": "Asia/Tokyo",
        "TF_NEED_CUDA": "1",
        "PYTHONPATH": "/nowhere",
        "CFLAGS": "-O0",
        "LD_LIBRARY_PATH": "/nowhere",
    }
    second = build(tmp_path / "another-place", "0.26.1", 0o077, **hostile)
    assert files.sha256(first) == files.sha256(second)


def test_another_bazel_makes_the_same_files(tmp_path: Path) -> None:
    assert content(build(tmp_path / "one", "0.26.1", 0o022)) == content(
        build(tmp_path / "three", "0.24.1", 0o002)
    )
