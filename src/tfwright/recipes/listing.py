"""`invoke recipes`: what each recipe pins, how far it was verified, and whether it builds here."""

from dataclasses import dataclass

from tfwright.build import verified
from tfwright.doctor import requirements
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe

UNVERIFIED = "unverified"


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


# Probes are kept for the process: all rows together ask this host's programs once.
def rows(host_file: HostFile) -> list[RecipeRow]:
    """Return a row for each recipe of recipes/."""
    return [_row(recipes.read(name), host_file) for name in recipes.names()]


def _row(recipe: Recipe, host_file: HostFile) -> RecipeRow:
    host = recipe.host
    return RecipeRow(
        recipe=recipe.name,
        tensorflow="-" if recipe.source.interface == "own" else str(recipe.source.release),
        bazel=recipe.bazel.version,
        python=host.python,
        cuda=host.cuda or "-",
        cudnn=host.cudnn or "-",
        platform=host.system if host.system == "any" else f"{host.system}-{host.machine}",
        patches=len(recipe.source.patches),
        # `invoke toolkit` may have made the CUDA of this recipe.
        builds_here=requirements.obstacle(recipe, host_file.of(recipe)) or "yes",
        # Compared with the recipe as it is now: an edit makes it unverified.
        verified=verified.said(recipe) or UNVERIFIED,
    )
