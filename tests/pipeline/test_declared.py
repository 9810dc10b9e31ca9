"""What a stage declares is what decides: every key of a recipe reaches the stages that read it."""

from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

import pytest

from tfwright.documents.recipe import BESIDE_THE_BUILD, Recipe
from tfwright.documents.toml import Table
from tfwright.pipeline import stamps
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.stage import Results, Stage
from tfwright.pipeline.stages import PIPELINE

TABLES = {
    name: field.annotation
    for name, field in Recipe.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Table)
}


class Anything(dict[object, object]):
    """Results of which only the digest is asked."""

    def __missing__(self, _: object) -> "Anything":
        return self

    def essence(self) -> Mapping[str, Any]:
        return {}


def keys() -> Iterator[tuple[str, str]]:
    """Yield every key that may decide a build; keys of Recipe itself have no table."""
    for name in Recipe.model_fields.keys() - BESIDE_THE_BUILD:
        table = TABLES.get(name)
        if table is None:
            yield "", name
        else:
            fields = table.model_fields.items()
            # A short form of other keys, which are there in its place.
            yield from ((name, key) for key, field in fields if not field.exclude)


def depends(stage: Stage, request: RecipeJob) -> dict[str, str]:
    results: Results = Anything()  # type: ignore[assignment]
    return stamps.part_checksums(stage, request, results)


def changed(recipe: Recipe, table: str, key: str) -> Recipe:
    """Return a recipe in which one key has another value; what it means does not matter here."""
    if not table:
        return recipe.model_copy(update={key: "another"})
    other = getattr(recipe, table).model_copy(update={key: "another"})
    return recipe.model_copy(update={table: other})


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize(("table", "key"), sorted(keys()))
def test_every_key_wakes_the_stages_that_are_handed_its_table_and_no_other(
    job: RecipeJob, monkeypatch: pytest.MonkeyPatch, table: str, key: str
) -> None:
    monkeypatch.setattr(Stage, "inputs", lambda *_: {})
    other = RecipeJob(recipe=changed(job.recipe, table, key), host_file=job.host_file)
    woken = {stage.name for stage in PIPELINE if depends(stage, job) != depends(stage, other)}
    handed = {
        stage.name
        for stage in PIPELINE
        if Recipe in stage.tables or TABLES.get(table) in stage.tables
    }
    assert woken == handed
    # The build record in the wheel holds the whole recipe.
    assert "seal" in woken


@pytest.mark.parametrize("stage", PIPELINE, ids=lambda stage: stage.name)
@pytest.mark.parametrize("hook", ["inputs", "damage"])
def test_a_hook_is_handed_nothing_that_its_stage_does_not_declare(stage: Stage, hook: str) -> None:
    function = getattr(stage.module, hook, None)
    asked = set(get_type_hints(function).values()) if function else set()
    tables = {kind for kind in asked if isinstance(kind, type) and issubclass(kind, Table)}
    assert tables <= set(stage.tables) or Recipe in stage.tables


def test_what_a_stage_is_handed_holds_no_recipe(job: RecipeJob) -> None:
    assert not hasattr(job.job, "recipe")
    assert job.job.name == job.recipe.name
