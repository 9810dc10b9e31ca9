"""Recipes whose wheels would have one file name: the later one would replace the other's wheel."""

from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import Recipe
from tfwright.errors import RecipeError
from tfwright.pipeline.job import BuildRequest

STAMP = "stamps/publish.json"
"""Where the publish stage of a recipe leaves its stamp, below the recipe's directory."""


def wheel_identity(recipe: Recipe) -> tuple[str, ...]:
    """Return what decides the file name of a recipe's wheel.

    TensorFlow derives the version from its source, so that the commit stands for it.
    """
    host, package = recipe.host, recipe.package
    return (
        # Capabilities and flags of Bazel are not in a wheel's name, so they are not
        # here.
        recipe.source.commit,
        host.python,
        host.system,
        host.machine,
        package.project_name or "",
        *package.flags,
    )


def insist_on_own_name(request: BuildRequest) -> None:
    """Refuse a first build whose wheel would replace the one of another recipe in the wheelhouse.

    Raises RecipeError naming the other recipe.
    """
    # Asked only once for a recipe: its own earlier wheel is meant to be replaced.
    places = request.places
    if request.until != "publish" or (places.own / STAMP).exists():
        return
    for stamp in sorted(places.build_out.glob(f"*/{STAMP}")):
        name = stamp.parents[1].name
        if name != request.name and _makes_the_same(name, request.recipe):
            raise _refusal(request.name, name)


def _makes_the_same(name: str, recipe: Recipe) -> bool:
    """Say whether another recipe's wheel has the file name of this one's."""
    # A directory may be left of a recipe that was renamed or removed.
    if name not in recipes.names():
        return False
    return wheel_identity(recipes.read(name)) == wheel_identity(recipe)


def _refusal(name: str, other: str) -> RecipeError:
    return RecipeError(
        f"The wheel of {name} would replace the one of {other}: both have the same file name",
        remedy="Set package.project_name in one of the recipes, or build them with different "
        "host files, so that each has a build_out of its own.",
    )
