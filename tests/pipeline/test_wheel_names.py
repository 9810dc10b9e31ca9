"""Two recipes whose wheels have one file name: said before anything is built."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import change_text, make_file, make_folder

from tfwright.documents import recipe as recipes
from tfwright.errors import RecipeError
from tfwright.pipeline import engine
from tfwright.pipeline.job import RecipeJob


@pytest.fixture
def two(tmp_path: Path, recipe_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder of recipes with two that are the same but for their names."""
    folder = make_folder(tmp_path / "recipes")
    for name in ("one", "two"):
        shutil.copy(recipe_file, folder / f"{name}.toml")
    monkeypatch.setattr(recipes, "RECIPES", folder)
    return folder


def request_of(name: str, job: RecipeJob) -> RecipeJob:
    return replace(job, recipe=recipes.read(name))


def publish(name: str, job: RecipeJob) -> None:
    make_file(request_of(name, job).places.own / engine.PUBLISHED, "")


@pytest.mark.usefixtures("two")
def test_the_second_of_two_recipes_with_one_wheel_is_refused_before_its_build(
    job: RecipeJob,
) -> None:
    publish("one", job)
    second = request_of("two", job)
    with fails(RecipeError, "replace", "project_name"):
        engine.build(second)
    assert not second.places.stamps.exists()


def test_another_project_name_makes_another_wheel(job: RecipeJob, two: Path) -> None:
    named = '[package]\nproject_name = "tensorflow-two"\n[source]\nrelease = "1.12"'
    change_text(two / "two.toml", "[source]", named)
    publish("one", job)
    engine.check_wheel_name(request_of("two", job))


@pytest.mark.usefixtures("two")
def test_a_recipe_that_was_published_before_is_built_again(job: RecipeJob) -> None:
    for name in ("one", "two"):
        publish(name, job)
    engine.check_wheel_name(request_of("two", job))


@pytest.mark.usefixtures("two")
def test_what_is_left_of_a_recipe_that_was_removed_does_not_count(
    job: RecipeJob, two: Path
) -> None:
    publish("one", job)
    (two / "one.toml").unlink()
    engine.check_wheel_name(request_of("two", job))
