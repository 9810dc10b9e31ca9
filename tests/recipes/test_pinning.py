"""The packages of a new recipe: pinned at once, or said to be open."""

from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.documents.recipe import RECIPES
from tfwright.errors import HostError
from tfwright.lock import packages
from tfwright.recipes import writing
from tfwright.recipes.writing import NewRecipe


@pytest.fixture
def made(tmp_path: Path) -> NewRecipe:
    path = make_file(tmp_path / "mine.toml", (RECIPES / "demo.toml").read_text("utf-8"))
    return NewRecipe(path, ("a question",), ("numpy", "wheel"))


def test_packages_that_pip_finds_leave_nothing_to_pin(
    made: NewRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "pin", lambda *_: None)
    assert writing.pin_packages(made) == NewRecipe(made.path, made.open)


def test_what_keeps_pip_from_it_is_left_to_decide(
    made: NewRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise HostError("no Python 3.6", remedy="Install it.")

    monkeypatch.setattr(packages, "pin", refuse)
    found = writing.pin_packages(made)
    assert found.unpinned == made.unpinned
    assert found.open[0] == "a question"
    assert "no Python 3.6" in found.open[1]
