"""Room for a nightly build: what can be had again goes, on the disk that is short of room."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.making import make_file

from tfwright.documents.host_file import CacheTable, HostFile
from tfwright.documents.nightly import NightlyFile
from tfwright.nightly.builder import PipelineBuilder

LONG_AGO = 10**9
"""Seconds since 1970 at which nothing is in use any more."""


class Usage(NamedTuple):
    """What the system says of a disk."""

    total: int
    used: int
    free: int


def simulated(disks: Mapping[Path, int]) -> Callable[[Path], Usage]:
    """Return a disk_usage for disks of given sizes, each full but for what was removed from it.

    Only the sizes are simulated: the files are real.
    """
    before = {folder: bytes_below(folder) for folder in disks}

    def usage(path: Path) -> Usage:
        folder = next(folder for folder in disks if path.resolve().is_relative_to(folder))
        free = before[folder] - bytes_below(folder)
        return Usage(disks[folder], disks[folder] - free, free)

    return usage


def bytes_below(folder: Path) -> int:
    files = (path for path in folder.rglob("*") if path.is_file())
    return sum(path.stat().st_size for path in files)


def old_file(path: Path, size: int) -> Path:
    make_file(path, bytes(size))
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


@pytest.fixture
def builder(tmp_path: Path) -> PipelineBuilder:
    """Return a builder with the site, build_out and the cache in folders of their own."""
    (tmp_path / "host").mkdir()
    cache = CacheTable(directory=tmp_path / "cache")
    settings = HostFile(build_out=tmp_path / "out", cache=cache)
    old_file(tmp_path / "cache/cas/entry", 1000)
    return PipelineBuilder(NightlyFile(directory=tmp_path / "host"), settings)


def leftover(folder: Path) -> Path:
    """Put a venv that was never finished into the vault; no recipe needs it."""
    path = old_file(folder / "out/vault/pythons/half/file", 1000)
    os.utime(path.parent, (LONG_AGO, LONG_AGO))
    return path


def test_the_vault_is_cleared_before_the_cache(
    builder: PipelineBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unneeded = leftover(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", simulated({tmp_path: 10**6}))
    assert builder.make_room(500).site >= 500
    assert not unneeded.exists()
    assert (tmp_path / "cache/cas/entry").exists()
    assert builder.make_room(1500).site >= 1500
    assert not (tmp_path / "cache/cas/entry").exists()


def test_a_cache_on_another_disk_stays(
    builder: PipelineBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    sizes = {"cache": 10**6, "host": 10**7, "out": 10**7}
    disks = {tmp_path / name: size for name, size in sizes.items()}
    monkeypatch.setattr(shutil, "disk_usage", simulated(disks))
    assert builder.make_room(500).site == 0
    assert (tmp_path / "cache/cas/entry").exists()


def test_room_is_wanted_where_recipes_are_built_too(
    builder: PipelineBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unneeded = leftover(tmp_path)
    sizes = {"cache": 10**6, "host": 10**7, "out": 10**8}
    disks = {tmp_path / name: size for name, size in sizes.items()}
    monkeypatch.setattr(shutil, "disk_usage", simulated(disks))
    space = builder.make_room(500)
    assert (space.site, space.work) == (0, 1000)
    assert not unneeded.exists()
