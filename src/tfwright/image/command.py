"""The command image."""

from functools import partial
from typing import TYPE_CHECKING

from invoke import Context

from tfwright.options import JSON, RECIPE, file_of, job_of, one_of, task
from tfwright.terminal.answer import Answer, Shown

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
    """List the container images in the vault, or bring one; a recipe names it by its digest."""
    from tfwright.image import page
    from tfwright.image.images import Images
    from tfwright.tools.container import image as layouts

    one_of(add=add, pull=pull, build=build, containerfile=containerfile)
    job = job_of(recipe)
    images = Images(job.places.vault, job.log("image"), job.host_file.container.runtime)
    if build:
        built = images.build(job.recipe, recipe)
        show = partial(page.show_built, recipe=recipe)
        return Answer(
            built, show, lambda built: {**page.image_data(built.kept), "pinned": built.pinned}
        )
    if pull:
        found: tuple[KeptImage, ...] = (images.pull(job.recipe),)
    elif add:
        found = (layouts.add(file_of(add, "image --add"), images.vault),)
    elif containerfile:
        found = (images.build_file(file_of(containerfile, "image --containerfile")),)
    else:
        found = images.listed()
    return Answer(found, page.show_images, lambda found: map(page.image_data, found))
