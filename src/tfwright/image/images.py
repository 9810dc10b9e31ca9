"""`invoke image`: container images in the vault: from a tar file, a registry or a Containerfile."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import Recipe
from tfwright.errors import RecipeError, SupplyError
from tfwright.tools.container import image, registry
from tfwright.tools.container.image import KeptImage


def build(recipe: Recipe, named: str, make: Callable[[Path], KeptImage]) -> KeptImage:
    """Build the image of a recipe, `named` as the user did, from the Containerfile next to it.

    Raises RecipeError if the recipe names none, and what `make` raises, which builds the file.
    """
    pinned = recipe.host.image
    if pinned is None or pinned.containerfile is None:
        raise RecipeError(
            f"{recipe.argument} names no Containerfile",
            remedy='Add containerfile = "NAME" to [host.image]; docs/containers.md shows one. '
            "To build an image before a recipe pins it: invoke image --containerfile FILE",
        )
    return make(recipes.find(named).parent / pinned.containerfile)


def pull(recipe: Recipe, vault: Path) -> KeptImage:
    """Bring the image of a recipe from its registry, unless the vault has it.

    Raises RecipeError if the recipe names no image, SupplyError if it cannot be had.
    """
    pinned = recipe.host.image
    if pinned is None:
        raise RecipeError(
            f"{recipe.argument} names no container image",
            remedy="Add [host.image] with name and digest; docs/containers.md shows one.",
        )
    if image.path_of(vault, pinned.digest).is_dir():
        return image.find_image(vault, pinned.digest)
    return registry.pull(pinned.name, pinned.digest, vault)


def intact_images(vault: Path) -> tuple[KeptImage, ...]:
    """Return the images of the vault that are whole."""
    found = []
    for layout in sorted((vault / "images").glob("*")):
        # A build that names a damaged one says what is wrong with it.
        with suppress(SupplyError):
            found.append(image.find_image(vault, f"sha256:{layout.name}"))
    return tuple(found)
