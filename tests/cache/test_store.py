"""How large the caches of the nights are, and what of them goes."""

import os
import time
from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.tools.cache import store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a cache of three files of 100 bytes, used one, two and three days ago."""
    for days in (1, 2, 3):
        path = make_file(tmp_path / "cache" / f"{days:02}" / "blob", b"x" * 100)
        used = time.time() - days * 86400
        os.utime(path, (used, used))
    return tmp_path / "cache"


def trim(folder: Path, limit: int) -> int:
    return store.remove_oldest([folder], limit)


def left(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("*/blob"))


def test_what_was_used_longest_ago_goes_until_the_rest_fits(folder: Path) -> None:
    assert trim(folder, 300) == 300
    assert trim(folder, 250) == 200
    assert left(folder) == ["01", "02"]
    assert trim(folder, 250) == 200
    assert trim(folder, 0) == 0
    assert left(folder) == []


def test_what_was_used_just_now_belongs_to_a_build_and_stays(folder: Path) -> None:
    (folder / "01/blob").touch()
    assert trim(folder, 0) == 100
    assert left(folder) == ["01"]


def test_what_a_link_leads_to_is_neither_counted_nor_removed(folder: Path, tmp_path: Path) -> None:
    elsewhere = make_file(tmp_path / "elsewhere", b"x" * 5000)
    (folder / "link").symlink_to(elsewhere)
    assert trim(folder, 300) == 300
    assert trim(folder, 0) == 0
    assert elsewhere.exists()


def test_a_cache_that_was_never_made_holds_nothing(tmp_path: Path) -> None:
    assert trim(tmp_path / "none", 0) == 0
