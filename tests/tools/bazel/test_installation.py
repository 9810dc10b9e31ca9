"""What a Bazel's first start says if it could not unpack itself, and what it leaves."""

import os
import zipfile
from pathlib import Path

import pytest

from tfwright.errors import Evidence, HostError, TfwrightError, ToolError
from tfwright.tools.bazel import installation

SAID = Evidence(
    command=("bazel",),
    status=37,
    lines=("couldn't extract the embedded binaries",),
)
FAULT = ToolError("bazel exited with status 37", remedy="-", evidence=SAID)


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    """Return a Bazel that unpacks one file."""
    path = tmp_path / "bazel-0.26.1"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("A-server.jar", bytes(1000), zipfile.ZIP_DEFLATED)
    return path


def explained(
    binary: Path, root: Path, fault: TfwrightError = FAULT
) -> TfwrightError:
    return installation.explained(fault, binary, root)


def test_no_room_for_what_it_unpacks_is_a_full_disk(
    binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "not/there/yet"
    assert isinstance(explained(binary, root), ToolError)
    monkeypatch.setattr(installation, "_free", lambda _: 999)
    found = explained(binary, root)
    assert isinstance(found, HostError)
    assert "could not unpack itself" in found.what


def test_a_script_in_its_place_unpacks_nothing(tmp_path: Path) -> None:
    (tmp_path / "bazel").write_text("#!/bin/sh\n", "utf-8")
    assert explained(tmp_path / "bazel", tmp_path).remedy == installation.REMEDY


def test_the_host_is_not_blamed_twice(binary: Path, tmp_path: Path) -> None:
    fault = HostError("no bash", remedy="Install it.")
    assert explained(binary, tmp_path, fault) is fault


def test_only_what_a_process_that_ended_left_half_unpacked_is_removed(
    binary: Path, tmp_path: Path
) -> None:
    install = tmp_path / "root/install"
    gone, running, other = (
        install / f"0123.tmp.{name}" for name in (2**22 + 1, os.getpid(), "x")
    )
    for folder in (gone, running, other):
        folder.mkdir(parents=True)
    explained(binary, tmp_path / "root")
    assert sorted(install.iterdir()) == sorted([running, other])
