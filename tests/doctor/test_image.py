"""What `invoke doctor` can know of a recipe whose compiler is in a container image."""

import io
import json
import tarfile
from pathlib import Path

import pytest
from tests.making import Read, make_file
from tests.remedies.following import CommandLine, add

from tfwright.tools.container import image
from tfwright.tools.container.image import KeptImage


@pytest.fixture
def made(tmp_path: Path) -> KeptImage:
    """Return an image that another host has."""
    with tarfile.open(tmp_path / "root.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("etc"), io.BytesIO())
    return image.import_tar(tmp_path / "root.tar", tmp_path / "other")


@pytest.fixture
def pinned(made: KeptImage, recipe_file: Path) -> Path:
    """Return a recipe whose image a registry has."""
    pin = f'name = "registry.example/small"\ndigest = "{made.digest}"'
    add(recipe_file, f"[host.image]\n{pin}\n", after='version = "0.26.1"')
    return recipe_file


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder on PATH, with a skopeo whose registry has every image."""
    make_file(tmp_path / "bin/skopeo", "#!/bin/sh\necho {}\n")
    (tmp_path / "bin/skopeo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


@pytest.mark.parametrize("there", [False, True])
def test_without_the_image_or_its_engine_nothing_else_is_examined(
    shell: CommandLine, pinned: Path, programs: Path, out: Read, *, there: bool
) -> None:
    if there:
        (programs / "podman").touch(0o755)
    status = shell.status(f"invoke doctor --recipe {pinned} --json")
    assert status == (0 if there else 3)
    shown = json.loads(out())
    assert shown["facts"] == []
    found = [finding["found"] for finding in shown["findings"]]
    absent = "the container image is not here yet"
    assert found == ([absent] if there else ["no podman", absent])
    # The build will pull it; a look downloads nothing.
    assert not (programs.parent / "build_out/vault/images").exists()
