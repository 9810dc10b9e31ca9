"""The recipes side by side."""

from pathlib import Path

import pytest

from tfwright.commands import recipes as listing
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.errors import RecipeError


def test_every_bundled_recipe_has_a_row() -> None:
    rows = {row.recipe: row for row in listing.rows(HostFile())}
    assert sorted(rows) == recipes.names()
    assert rows["macos-r1.8-cuda9.2"].patches == 4


def test_the_bundled_recipes_and_patches_are_in_order() -> None:
    listing.lint()


def test_a_recipe_that_leaves_a_question_unanswered_is_found(
    recipe_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipes, "RECIPES", recipe_file.parent)
    with pytest.raises(RecipeError, match="TF_NEED_CUDA"):
        listing.lint()


def test_a_lock_that_its_recipe_has_left_behind_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "linux-r1.8-cpu"
    for path in recipes.RECIPES.glob(f"{name}.*"):
        (tmp_path / path.name).write_text(
            path.read_text("utf-8").replace("numpy==1.14.5", "numpy==1.14.6"), "utf-8"
        )
    monkeypatch.setattr(recipes, "RECIPES", tmp_path)
    with pytest.raises(
        RecipeError, match=r"is not the lock of its recipe: requirement numpy==1\.14\.6 is wanted"
    ) as caught:
        listing.lint()
    assert caught.value.remedy.startswith(f"Run 'invoke lock --recipe {name}'")
