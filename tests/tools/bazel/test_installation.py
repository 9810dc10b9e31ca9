"""What a Bazel's first start says if it could not unpack itself, and what it leaves."""

import os
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.making import make_folder

from tfwright.errors import Evidence, HostError, TfwrightError, ToolError
from tfwright.tools.bazel import installation

SAID = Evidence(command=("bazel",), status=37, lines=("couldn't extract the embedded binaries",))
FAULT = ToolError("bazel exited with status 37", remedy="-", evidence=SAID)


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    """Return a Bazel that unpacks one file."""
    path = tmp_path / "bazel-0.26.1"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("A-server.jar", bytes(1000), zipfile.ZIP_DEFLATED)
    return path


def explained(binary: Path, root: Path) -> TfwrightError:
    return installation.first_start_error(FAULT, binary, root)


def test_no_room_for_what_it_unpacks_is_a_full_disk(
    binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "not/there/yet"
    assert isinstance(explained(binary, root), ToolError)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=999))
    found = explained(binary, root)
    assert isinstance(found, HostError)
    assert "could not unpack itself" in found.what


def test_a_script_in_its_place_unpacks_nothing(tmp_path: Path) -> None:
    (tmp_path / "bazel").write_text("#!/bin/sh\n", "utf-8")
    assert explained(tmp_path / "bazel", tmp_path) is FAULT


def test_only_what_a_process_that_ended_left_half_unpacked_is_removed(
    binary: Path, tmp_path: Path
) -> None:
    install = tmp_path / "root/install"
    gone, running, other = (install / f"0123.tmp.{name}" for name in (2**22 + 1, os.getpid(), "x"))
    for folder in (gone, running, other):
        folder.mkdir(parents=True)
    explained(binary, tmp_path / "root")
    assert sorted(install.iterdir()) == sorted([running, other])


def unpacked_by(binary: Path, root: Path) -> Path:
    """Unpack a Bazel as it does itself."""
    name = "0123456789abcdef" * 2
    with zipfile.ZipFile(binary, "a") as packed:
        packed.writestr(installation.KEY, f"{name}\n")
        packed.writestr("embedded_tools/tools/cpp/BUILD", "cc\n")
        folder = root / "install" / name / "_embedded_binaries"
        packed.extractall(folder)
    return folder


@pytest.mark.parametrize(
    ("harm", "said"), [("edit", "changed on disk"), ("remove", "is missing"), ("add", "was added")]
)
def test_an_unpacked_bazel_that_somebody_changed_is_removed_and_it_is_said_how(
    binary: Path, tmp_path: Path, harm: str, said: str
) -> None:
    root = tmp_path / "root"
    folder = unpacked_by(binary, root)
    assert installation.remove_damaged(binary, root) == []
    build = folder / "embedded_tools/tools/cpp/BUILD"
    state = build.stat()
    if harm == "edit":
        build.write_text("cx\n", "utf-8")
        os.utime(build, ns=(state.st_atime_ns, state.st_mtime_ns))
    elif harm == "remove":
        build.unlink()
    else:
        build = build.with_name("BUILD.bazel")
        build.touch()
    found = installation.remove_damaged(binary, root)
    assert found == [f"embedded_tools/tools/cpp/{build.name} {said}"]
    assert not folder.exists()


def test_an_unpacked_bazel_that_was_only_touched_or_is_another_one_stays(
    binary: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    folder = unpacked_by(binary, root)
    other = make_folder(root / "install" / ("f" * 32))
    (folder / "A-server.jar").touch()
    assert installation.remove_damaged(binary, root) == []
    assert folder.exists()
    assert other.exists()
