"""The command image."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from invoke import Context

from tfwright.options import JSON, RECIPE, check_exclusive, job_of, required_file, task
from tfwright.terminal import text
from tfwright.terminal.answer import Answer, Shown
from tfwright.terminal.text import Column

if TYPE_CHECKING:
    from tfwright.tools.container.image import KeptImage


@task(
    help=RECIPE
    | JSON
    | {
        "add": "a file system in a tar file, which becomes an image in the vault",
        "pull": "bring the recipe's image from its registry, by digest",
        "build": "build the recipe's image from the Containerfile next to it",
        "containerfile": "build an image from this file, before a recipe pins it",
    }
)
def image(
    _: Context,
    recipe: str = "demo",
    add: str = "",
    pull: bool = False,
    build: bool = False,
    containerfile: str = "",
) -> Shown:
    """List the container images in the vault, or add one; a recipe names it by its digest."""
    from tfwright.image import images
    from tfwright.tools.container import building
    from tfwright.tools.container import image as layouts

    check_exclusive(add=add, pull=pull, build=build, containerfile=containerfile)
    job = job_of(recipe)
    vault, runtime = job.places.vault, job.host_file.container.runtime
    make = partial(building.build, vault=vault, log=job.log("image"), runtime=runtime)
    if build:
        built, table = images.build(job.recipe, recipe, make), job.recipe.host.image
        pinned = table.digest if table else ""
        show = partial(show_built, recipe=recipe, pinned=pinned)
        return Answer(built, show, lambda built: {**image_data(built), "pinned": pinned})
    if pull:
        found: tuple[KeptImage, ...] = (images.pull(job.recipe, vault),)
    elif add:
        found = (layouts.import_tar(required_file(add, "image --add"), vault),)
    elif containerfile:
        found = (make(required_file(containerfile, "image --containerfile")),)
    else:
        found = images.intact_images(vault)
    return Answer(found, show_images, lambda found: map(image_data, found))


COLUMNS = (Column("digest, for [host.image] of a recipe"), Column("MiB", rank=1, right=True))


def show_images(images: "Sequence[KeptImage]") -> None:
    """Print the digests and sizes of images."""
    # The digest whole: recipes name images by it.
    rows = [(image.digest, str(image.size >> 20)) for image in images]
    text.table(COLUMNS, rows, empty="The vault holds no container image.")


def show_built(built: "KeptImage", recipe: str, pinned: str) -> None:
    """Say which image was built, and whether the recipe already names it."""
    show_images((built,))
    if built.digest == pinned:
        text.tell(f"{recipe} pins this image.", text.GOOD)
    else:
        text.tell(f"{recipe} pins another image: {pinned}", text.WARNING)
        text.tell(f'  do:     Write digest = "{built.digest}" into its [host.image].')


def image_data(image: "KeptImage") -> dict[str, object]:
    """Return an image for machines."""
    return {
        "digest": image.digest,
        "config": image.config,
        "layout": image.layout,
        "size": image.size,
    }
