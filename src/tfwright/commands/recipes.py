"""`invoke recipes`: what each recipe pins, how far it was verified, and whether it builds here."""

from dataclasses import dataclass

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.host import examination


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
