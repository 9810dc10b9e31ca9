"""The bundled tree as a commit: the same everywhere, and pinned by its recipe."""

import os
import shutil
from pathlib import Path

import pytest
from tests.making import make_file
from tests.upstream import bundled_commit

from tfwright.documents import recipe as recipes
from tfwright.progress import SILENCE
from tfwright.tools.git import demo, mirror
from tfwright.tools.git.mirror import Origin, Pin
from tfwright.tools.git.repository import GitRepository

pytestmark = pytest.mark.medium


def bring(commit: str, store: Path) -> Path:
    return mirror.fetch(
        Pin(demo.URL, "main", commit), store, Origin.of(demo.URL), SILENCE, offline=True
    )


def test_the_demo_recipe_pins_the_bundled_tree_as_it_is() -> None:
    assert recipes.read("demo").source.commit == bundled_commit()


def test_the_commit_is_brought_without_a_network_and_dated_2018(tmp_path: Path) -> None:
    commit = bundled_commit()
    assert GitRepository(bring(commit, tmp_path / "git")).epoch(commit) == 1514764800


def test_neither_modes_nor_leftovers_nor_the_users_git_change_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = bundled_commit()
    copy = tmp_path / "tree"
    shutil.copytree(demo.TREE, copy)
    for path in copy.rglob("*"):
        path.chmod(0o700)
    (copy / "__pycache__").mkdir(exist_ok=True)
    (copy / "__pycache__/configure.cpython-311.pyc").touch()
    monkeypatch.setattr(demo, "TREE", copy)
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    before = os.umask(0o077)
    try:
        assert bundled_commit() == expected
    finally:
        os.umask(before)


def test_a_changed_file_changes_the_commit_and_a_program_is_executable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_file(tmp_path / "tree/configure", b"#!/bin/sh\r\n")
    (tmp_path / "tree/BUILD").write_text("", "utf-8")
    monkeypatch.setattr(demo, "TREE", tmp_path / "tree")
    commit = bundled_commit()
    entries = GitRepository(bring(commit, tmp_path / "git")).entries(commit)
    assert {entry.path: entry.mode for entry in entries} == {
        "configure": 0o100755,
        "BUILD": 0o100644,
    }
    (tmp_path / "tree/BUILD").write_text("# another\n", "utf-8")
    assert bundled_commit() != commit
