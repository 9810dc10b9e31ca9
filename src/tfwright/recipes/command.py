"""The commands recipes, new and record."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from invoke import Context

from tfwright.options import JSON, MACHINE, RECIPE, job_of, task
from tfwright.terminal.answer import Answer, Shown


@task(help=JSON)
def recipes(_: Context) -> Shown:
    """List the recipes: what each one pins, how far it was verified, and whether it builds here."""
    from tfwright.documents import host_file
    from tfwright.recipes import page

    # A row compares the recipe with this host, and starts no build.
    return Answer(page.recipe_rows(host_file.read()), page.show_recipes)


@task(
    needs={"name": "like"},
    help=JSON
    | MACHINE
    | {
        "release": "such as 2.6, 2.4.4, 1.12.0-rc0 or 2.4.0@COMMIT; default: the newest that fits",
        "bazel": "version, where neither the tree nor tfwright's tables name one",
        "like": "copy this recipe instead, without what was verified",
        "name": "the name of the copy",
        "folder": "where to write it, instead of recipes/",
    },
)
def new(
    _: Context,
    machine: Mapping[str, str],
    release: str = "",
    like: str = "",
    name: str = "",
    bazel: str = "",
    folder: str = "",
) -> Shown:
    """Write a new recipe: fill in what is known, with its source, and ask for the rest."""
    from tfwright.documents import host_file
    from tfwright.documents import recipe as recipes
    from tfwright.errors import RecipeError
    from tfwright.host import probes
    from tfwright.match import releases
    from tfwright.match import wish as wishes
    from tfwright.recipes import page, writing

    if like:
        if not name:
            raise RecipeError("The copy needs a name", remedy="Add --name NAME.")
        # A copy keeps every pin; what was verified holds only for the original.
        return Answer(
            writing.copy_recipe(recipes.file_with_text(recipes.find(like)), name, folder),
            page.show_new,
        )
    # What was not typed is as on this host. A GPU in it alone is not a wish for CUDA.
    wish = wishes.wish_of_options(machine, probes.this_host())
    if not (machine["gpu"] or machine["cuda"] or machine["host"]):
        wish = replace(wish, gpu="", driver="")
    if not release:
        fitting = releases.fitting_releases(wish)
        if not fitting:
            raise RecipeError(
                "tfwright's tables have no TensorFlow for this",
                remedy=f"{'; '.join(releases.exclusions(wish))}.",
            )
        release = str(fitting[0])
    wanted = writing.parse_release(release)
    place = Path(folder) if folder else recipes.RECIPES
    made = writing.new(wish, wanted, host_file.read(), place, page.ask_answer, bazel)
    return Answer(writing.pin_packages(made), page.show_new)


@task(help=RECIPE | JSON)
def record(_: Context, recipe: str = "demo") -> Shown:
    """Answer ./configure yourself, once, and write questions and answers into the recipe."""
    from tfwright.documents import recipe as recipes
    from tfwright.recipes import page, session

    job = job_of(recipe)
    recorded = session.record(job, recipes.find_editable(recipe), page.ask_question)
    return Answer(recorded, partial(page.show_recorded, recipe=job.argument))
