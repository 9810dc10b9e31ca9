"""What is said of disks, archives and databases of this host, done to the letter."""

import importlib.metadata
import importlib.util
import io
import os
import re
import sqlite3
import tarfile
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from tests.limits import largest_file
from tests.making import find_text, make_file, make_folder
from tests.remedies.following import CommandLine, commands, failing

from tfwright.documents.recipe import ROOT
from tfwright.errors import HostError, SupplyError
from tfwright.tools import disk, signing, unpacking
from tfwright.tools.bazel import binary
from tfwright.tools.http.partial import Partial

# Disks


@pytest.mark.medium
@pytest.mark.parametrize("way", ["command", "larger disk"])
def test_a_full_disk_gets_room_or_build_out_a_larger_one(
    shell: CommandLine, tmp_path: Path, way: str
) -> None:
    def write(place: Path) -> None:
        with disk.explained():
            place.write_text("x", "utf-8")

    fault = failing(lambda: write(Path("/dev/full")), HostError)
    if way == "command":
        # A Bazel that no recipe pins any more, from long ago.
        old = make_file(tmp_path / "old", b"x")
        vault = tmp_path / "build_out/vault"
        kept = binary.put(old, "0.1.0", binary.here(), vault, "here").path
        for path in (kept, kept.with_name("about.json"), kept.parent):
            os.utime(path, (0, 0))
        (command,) = commands(fault.remedy)
        shell.succeeds(command)
        assert not kept.exists()
    else:
        assert "set build_out in the host file to a larger disk" in fault.remedy
        write(tmp_path / "larger")


def test_a_working_directory_that_is_gone_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    failing(disk.insist_on_working_directory, HostError, "directory")
    os.chdir(tmp_path)
    disk.insist_on_working_directory()


def test_a_download_is_written_once_the_limit_is_raised(tmp_path: Path) -> None:
    with closing(Partial(tmp_path / "file", "")) as download:
        with largest_file(100):
            fault = failing(lambda: download.append(bytes(4096)), HostError)
        (limit,) = re.findall(r"'(ulimit -f unlimited)'", fault.remedy)
        # `largest_file` has given the limit back that the command sets.
        assert limit
        download.append(bytes(4096))
        download.keep()
    assert (tmp_path / "file").stat().st_size >= 4096


def test_what_keeps_a_database_locked_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"

    def write() -> None:
        with closing(sqlite3.connect(file, timeout=0)) as database:
            try:
                database.execute("CREATE TABLE a (b)")
            except sqlite3.Error as fault:
                explained = disk.database_failure(fault, file)
                assert explained
                raise explained from fault

    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        fault = failing(write, HostError)
    assert fault.remedy == "Wait until it has ended, then start again."
    write()


# Archives


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return an archive with one large file."""
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        member = tarfile.TarInfo("zeros")
        member.size = 1 << 20
        packed.addfile(member, io.BytesIO(bytes(1 << 20)))
    return path


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "into")


def test_a_damaged_archive_is_downloaded_again(archive: Path, into: Path) -> None:
    whole = archive.read_bytes()
    archive.write_bytes(whole[:200])
    unpack = partial(unpacking.unpack, archive, into)
    failing(unpack, SupplyError, "Download")
    archive.write_bytes(whole)
    unpack()


def test_an_archive_gets_room_on_its_disk(
    archive: Path, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack = partial(unpacking.unpack, archive, into)
    with monkeypatch.context() as nearly_full:
        nearly_full.setattr(unpacking, "KEPT_FREE", 1 << 60)
        fault = failing(unpack, HostError)
    assert fault.remedy.startswith("Free some space")
    unpack()


def test_what_is_in_the_way_of_an_archive_is_corrected(archive: Path, into: Path) -> None:
    (into / "zeros").mkdir()
    (into / "zeros/inner").touch()
    unpack = partial(unpacking.unpack, archive, into)
    fault = failing(unpack, HostError, "permissions")
    assert str(into / "zeros") in fault.what
    (into / "zeros/inner").unlink()
    (into / "zeros").rmdir()
    unpack()


# What is installed for a part of the commands only


@pytest.mark.medium
def test_what_signatures_need_is_installed_by_the_command_that_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    insist, module = partial(signing._key, Path(__file__)), "securesystemslib"
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
