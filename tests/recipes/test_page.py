"""What `invoke recipes` prints."""

import shutil
from pathlib import Path

import pytest
from tests.making import Read, make_file

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.recipes import page
from tfwright.terminal.answer import json_value


def test_an_empty_directory_of_recipes_is_said_to_be_so(out: Read) -> None:
    page.show_recipes([])
    assert out() == "The directory recipes/ holds no recipe.\n"


@pytest.mark.medium
def test_every_bundled_recipe_has_a_row() -> None:
    found = page.recipe_rows(HostFile())
    rows = {row.recipe: row for row in found}
    assert sorted(rows) == recipes.names()
    assert rows["macos-r1.8-cuda9.2"].patches == 4
    # They are one list of JSON.
    assert json_value(found) == [vars(row) for row in found]


@pytest.mark.medium
def test_a_recipe_that_does_not_load_has_a_row_with_its_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, err: Read
) -> None:
    make_file(tmp_path / "broken.toml", 'summary = "x\n')
    shutil.copy(recipes.find("demo"), tmp_path)
    shutil.copytree(recipes.PATCHES / "demo", tmp_path / "patches/demo")
    monkeypatch.setattr(recipes, "RECIPES", tmp_path)
    broken, demo = page.recipe_rows(HostFile())
    assert (broken.recipe, demo.recipe) == ("broken", "demo")
    assert broken.builds_here == "invalid"
    assert "no closing quote" in broken.fault
    assert [recipe.name for recipe in recipes.readable_recipes()] == ["demo"]
    page.show_recipes([broken, demo])
    # However narrow the table is.
    assert "no closing quote" in err().replace("\n  ", " ")
