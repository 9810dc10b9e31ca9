"""The recipes side by side, and what is wrong with any of them."""

from dataclasses import dataclass
from pathlib import Path

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.errors import Evidence, RecipeError
from tfwright.host import examination
from tfwright.pipeline.stages import configure
from tfwright.tools.git import patching
from tfwright.vault import lock, locking


@dataclass(frozen=True)
class RecipeRow:
    """One recipe in the table of `invoke recipes`."""

    recipe: str
    tensorflow: str
    bazel: str
    python: str
    cuda: str
    cudnn: str
    platform: str
    patches: int
    builds_here: str
    verified: str


def rows(host_file: HostFile) -> list[RecipeRow]:
    """Return a row for each recipe of recipes/."""
    return [_row(recipes.read(name), host_file) for name in recipes.names()]


def _row(recipe: Recipe, host_file: HostFile) -> RecipeRow:
    host, verified = recipe.host, recipe.verified
    return RecipeRow(
        recipe=recipe.name,
        tensorflow=str(recipe.source.release),
        bazel=recipe.bazel.version,
        python=host.python,
        cuda=host.cuda or "-",
        cudnn=host.cudnn or "-",
        platform=host.system if host.system == "any" else f"{host.system}-{host.machine}",
        patches=len(recipe.source.patches),
        builds_here=examination.obstacle(recipe, host_file.of(recipe)) or "yes",
        verified=f"{verified.until} ({verified.on})" if verified else "unverified",
    )


def lint() -> None:
    """Check every recipe of recipes/, its lock, and every patch that one of them names.

    Raises RecipeError for the first that does not load, whose patch lacks its header or is no plain
    patch, that leaves a question of its release's ./configure unanswered, or whose lock is outdated.
    """
    for name in recipes.names():
        recipe = recipes.read(name)
        for patch in recipe.source.patches:
            patching.header(recipes.PATCHES / patch)
            patching.read(recipes.PATCHES / patch)
        configure.rendered(recipe, HostFile())
        _lint_lock(recipe, recipes.find(name).with_suffix(".lock"))


def _lint_lock(recipe: Recipe, path: Path) -> None:
    wrong = locking.outdated(recipe, lock.read(path)) if path.is_file() else []
    if wrong:
        remedy = f"Run 'invoke lock --recipe {recipe.name}', and read what it changes."
        raise RecipeError(
            f"{path} is not the lock of its recipe: {wrong[0]}",
            remedy=remedy,
            evidence=Evidence(where=str(path), lines=wrong),
        )
