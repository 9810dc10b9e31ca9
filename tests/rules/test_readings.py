"""Readings of a tree that are kept for the next run."""

from pathlib import Path

import pytest
from tests.making import change_text

from tfwright.rules import patched_tree
from tfwright.rules.model import Rules
from tfwright.rules.patched_tree import Readings

RULES = Rules((), (), ())


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    kept = Readings(tmp_path)
    assert kept.read_once("tree", lambda: RULES, Rules) == RULES
    assert kept.read_once("tree", lambda: pytest.fail("read again"), Rules) == RULES


def test_nothing_to_be_read_is_not_kept(tmp_path: Path) -> None:
    kept = Readings(tmp_path)
    assert kept.read_once("tree", lambda: None, Rules) is None
    assert kept.read_once("tree", lambda: RULES, Rules) == RULES


def test_without_a_folder_everything_is_read_each_time() -> None:
    kept = Readings(None)
    assert kept.read_once("tree", lambda: RULES, Rules) == RULES
    assert kept.read_once("tree", lambda: None, Rules) is None


def test_a_damaged_reading_is_made_again(tmp_path: Path) -> None:
    Readings(tmp_path).read_once("tree", lambda: RULES, Rules)
    (file,) = tmp_path.glob("*.json")
    change_text(file, "[]", "[1]")
    other = Rules((), (), references=())
    again = iter([other])
    assert Readings(tmp_path).read_once("tree", lambda: next(again), Rules) is other


def test_the_oldest_readings_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patched_tree, "MOST_READINGS", 2)
    for name in ("first", "second", "third"):
        Readings(tmp_path).read_once(name, lambda: RULES, Rules)
    assert len(list(tmp_path.glob("*.json"))) == 2
    kept = Readings(tmp_path)
    assert kept.read_once("third", lambda: pytest.fail("read again"), Rules) == RULES
