"""`invoke image`: container images in the vault: from a tar file, a registry or a Containerfile."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents import recipe as recipes
from tfwright.errors import RecipeError, SupplyError
from tfwright.pipeline import containers
from tfwright.pipeline.job import RecipeJob
from tfwright.tools.container import building, image
from tfwright.tools.container.image import KeptImage


@dataclass(frozen=True)
class BuiltImage:
    """An image that was built from a recipe's Containerfile."""

    kept: KeptImage
    pinned: str
    """The digest in the recipe."""

    @property
    def as_pinned(self) -> bool:
        """Whether the recipe names this very image."""
        return self.kept.digest == self.pinned


def add(root: Path, vault: Path) -> KeptImage:
    """Make an image of a file system in a tar file. Raises SupplyError if it cannot be read."""
    return image.add(root, vault)


def build(job: RecipeJob, name: str) -> BuiltImage:
    """Build the image of a recipe from the Containerfile next to it.

    Raises RecipeError if the recipe names none, ToolError if podman fails.
    """
    pinned = job.recipe.host.image
    if pinned is None or pinned.containerfile is None:
        raise RecipeError(
            f"{name} names no Containerfile",
            remedy='Add containerfile = "NAME" to [host.image]; docs/containers.md shows one. To '
            "build an image before a recipe pins it: invoke image --containerfile FILE",
        )
    path = recipes.find(name).parent / pinned.containerfile
    runtime = job.host_file.container.runtime
    kept = building.build(path, job.places.vault, job.log("image"), runtime)
    return BuiltImage(kept, pinned.digest)


def build_file(job: RecipeJob, containerfile: Path) -> KeptImage:
    """Build an image from a Containerfile that no recipe names yet.

    Raises RecipeError for a base without digest, ToolError if podman fails.
    """
    runtime = job.host_file.container.runtime
    return building.build(containerfile, job.places.vault, job.log("image"), runtime)


def pull(job: RecipeJob, name: str) -> KeptImage:
    """Bring the image of a recipe from its registry, unless the vault has it.

    Raises RecipeError if the recipe names no image, SupplyError if it cannot be had.
    """
    pinned = job.recipe.host.image
    if pinned is None:
        raise RecipeError(
            f"{name} names no container image",
            remedy="Add [host.image] with name and digest; docs/containers.md shows one.",
        )
    containers.bring(job)
    return image.kept(job.places.vault, pinned.digest)


def listed(vault: Path) -> tuple[KeptImage, ...]:
    """Return the images of the vault that are whole."""
    found = []
    for layout in sorted((vault / "images").glob("*")):
        # A build that names a damaged one says what is wrong with it.
        with suppress(SupplyError):
            found.append(image.kept(vault, f"sha256:{layout.name}"))
    return tuple(found)
