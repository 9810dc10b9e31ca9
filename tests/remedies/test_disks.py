"""What is said of disks, archives and databases of this host, done to the letter."""

import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.making import find_text, make_file, make_folder, make_tar
from tests.remedies.following import CommandLine, commands, failing

from tfwright.documents.recipe import ROOT
from tfwright.errors import HostError
from tfwright.tools import disk, signing, unpacking
from tfwright.tools.bazel import binary

# Disks


@pytest.mark.medium
@pytest.mark.parametrize("way", ["command", "larger disk"])
def test_a_full_disk_gets_room_or_build_out_a_larger_one(
    shell: CommandLine, tmp_path: Path, way: str
) -> None:
    def write(place: Path) -> None:
        with disk.as_host_error():
            place.write_text("x", "utf-8")

    fault = failing(lambda: write(Path("/dev/full")), HostError)
    if way == "command":
        # A Bazel that no recipe pins any more, from long ago.
        old = make_file(tmp_path / "old", b"x")
        vault = tmp_path / "build_out/vault"
        kept = binary.add_to_store(old, "0.1.0", binary.platform_name(), vault, "here").path
        for path in (kept, kept.with_name("about.json"), kept.parent):
            os.utime(path, (0, 0))
        (command,) = commands(fault.remedy)
        shell.succeeds(command)
        assert not kept.exists()
    else:
        assert "set build_out in the host file to a larger disk" in fault.remedy
        write(tmp_path / "larger")


# Archives


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return an archive with one large file."""
    return make_tar(tmp_path / "a.tar.gz", {"zeros": bytes(1 << 20)})


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "into")


def test_what_is_in_the_way_of_an_archive_is_corrected(archive: Path, into: Path) -> None:
    (into / "zeros").mkdir()
    (into / "zeros/inner").touch()
    unpack = partial(unpacking.unpack, archive, into)
    fault = failing(unpack, HostError, "correct this one")
    assert str(into / "zeros") in fault.what
    (into / "zeros/inner").unlink()
    (into / "zeros").rmdir()
    unpack()


# What is installed for a part of the commands only


@pytest.mark.medium
def test_what_signatures_need_is_installed_by_the_command_that_is_shown(
    monkeypatch: pytest.MonkeyPatch, keys: Callable[..., tuple[Path, Path]]
) -> None:
    insist, module = partial(signing.signer, keys()[0]), "securesystemslib"
    pytest.importorskip(module)
    found = importlib.util.find_spec
    with monkeypatch.context() as before:
        before.setattr(
            importlib.util, "find_spec", lambda name: None if name == module else found(name)
        )
        remedy = failing(insist, HostError).remedy
    named = find_text(r"pip install -r (requirements-\w+\.txt)' in \.venv", remedy)
    # The venv of the tests was made from this file, among others.
    pins = (ROOT / named[1]).read_text("utf-8")
    version = re.escape(importlib.metadata.version(module))
    assert re.search(rf"(?m)^{module}(\[.*\])?=={version}\b", pins)
    insist()
