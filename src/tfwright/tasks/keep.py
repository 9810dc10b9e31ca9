"""Commands that keep inputs: fetch, lock, bundle, vault."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from invoke import Context

from tfwright.tasks.common import (
    JSON,
    OFFLINE,
    RECIPE,
    explained,
    file_of,
    job_of,
    one_of,
    resuming,
    task,
)

if TYPE_CHECKING:
    from tfwright.tools.container.image import KeptImage


@task(help=RECIPE | OFFLINE | {"everything": "download for all recipes in recipes/"})
def fetch(
    _: Context, recipe: str = "demo", everything: bool = False, offline: bool = False
) -> None:
    """Download all inputs of a recipe into the vault; what failed before is tried again."""
    with explained("" if everything else recipe):
        from tfwright.documents import recipe as recipes
        from tfwright.pipeline import engine
        from tfwright.terminal import console

        # In turn: inputs that recipes share are then downloaded once.
        for name in recipes.names() if everything else (recipe,):
            job = job_of(name, until="fetch", offline=offline)
            console.announce(job)
            # Again, also where a stamp holds: a mirror may
            # have been added for what was missing.
            console.conclude(job, engine.build(job, again="fetch"))


@task(help=RECIPE)
def lock(_: Context, recipe: str = "demo") -> None:
    """Write the lock file next to a recipe: every input by its checksum.

    From then on a build refuses any other input.
    """
    with explained(recipe):
        from tfwright.commands import lock as locks
        from tfwright.documents import recipe as recipes
        from tfwright.terminal import vault as page

        # Next to the recipe, and committed with it.
        path = recipes.find(recipe).with_suffix(".lock")
        page.show_lock(path, locks.write(job_of(recipe), path))


@task(
    iterable=["add"],
    help=RECIPE
    | {
        "output": "the file to write",
        "add": "a further file to carry, such as CUDA's installer; may be repeated",
        "unpack": "verify this bundle, and put its files where 'invoke build --offline' finds them",
        "lacking": "on a worker: list what it lacks of the inputs for this folder",
        "with-toolkit": "add the recipe's packages of CUDA; their licences must allow it",
        "into": "with --unpack: directory to build in, instead of the host file's build_out",
    },
)
def bundle(
    _: Context,
    add: list[str],
    recipe: str = "demo",
    output: str = "",
    unpack: str = "",
    lacking: str = "",
    into: str = "",
    with_toolkit: bool = False,
) -> None:
    """Pack everything that a recipe's build needs into one file, or unpack such a file.

    A host without a network unpacks it and builds with --offline.
    """
    # What to type again after an interruption differs for the two directions.
    resume = (
        resuming("bundle", unpack=unpack, into=into)
        if unpack
        else resuming("bundle", recipe=recipe, output=output, add=add, with_toolkit=with_toolkit)
    )
    with explained("" if unpack else recipe, resume):
        one_of(unpack=unpack, output=output, lacking=lacking)
        # A folder holds inputs that another host sends to this one, its worker.
        if lacking or (unpack and Path(unpack).is_dir()):
            _take_inputs(lacking, unpack)
        elif unpack:
            _unpack(unpack, into)
        else:
            _pack(recipe, output, add, with_toolkit=with_toolkit)


def _pack(recipe: str, output: str, add: Sequence[str], *, with_toolkit: bool) -> None:
    from tfwright.commands import bundle as bundles
    from tfwright.documents import recipe as recipes
    from tfwright.errors import RecipeError
    from tfwright.terminal import vault as page

    if not output:
        raise RecipeError(
            "The bundle needs a file name",
            remedy=f"Name it: {resuming('bundle', recipe=recipe)} --output FILE",
        )
    manifest = bundles.pack(
        job_of(recipe),
        recipes.find(recipe),
        Path(output),
        [Path(file) for file in add],
        with_toolkit=with_toolkit,
    )
    page.show_bundle(manifest)


def _unpack(unpack: str, into: str) -> None:
    from tfwright.commands import bundle as bundles
    from tfwright.documents import host_file
    from tfwright.terminal import console
    from tfwright.terminal import vault as page

    # Absolute, since Bazel and ./configure write the place down.
    build_out = Path(into).resolve() if into else host_file.read().build_out
    bundle = file_of(unpack, "bundle --unpack")
    page.show_bundle(bundles.unpack(bundle, build_out, console.Terminal()))


def _take_inputs(lacking: str, unpack: str) -> None:
    """Say what this worker lacks of the inputs in a folder, or put what is there into its vault."""
    from tfwright.commands import supply
    from tfwright.documents import host_file
    from tfwright.terminal import console
    from tfwright.terminal import vault as page

    settings = host_file.read()
    if lacking:
        page.show_lacking(supply.lacking(Path(lacking), settings))
    else:
        supply.take(Path(unpack), settings, console.Terminal())


@task(
    help=RECIPE
    | JSON
    | {
        "verify": "read every file and compare its checksum",
        "repair": "as --verify, and remove damaged files, so that they are downloaded again",
        "gc": "remove what no recipe and no lock needs",
        "links": "ask which sources of a recipe's archives still have them",
        "deep": "with --links: download the files and compare their checksums",
    }
)
def vault(
    _: Context,
    recipe: str = "demo",
    verify: bool = False,
    repair: bool = False,
    gc: bool = False,
    links: bool = False,
    deep: bool = False,
    json: bool = False,
) -> None:
    """Show what the vault holds, how large it is, which recipes share it, and what is unused."""
    with explained(recipe if links else ""):
        from tfwright.commands import links as link_check
        from tfwright.commands import vault as vaults
        from tfwright.documents import host_file
        from tfwright.terminal import vault as page

        # The vault is shared by all recipes, so only --links asks for one.
        one_of(verify=verify or repair, gc=gc, links=links)
        one_of(verify=verify or repair, gc=gc, json=json)
        build_out = host_file.read().build_out
        if links:
            page.show_links(link_check.check(job_of(recipe), deep=deep), as_json=json)
        elif verify or repair:
            page.show_sound(vaults.verify(build_out, repair=repair))
        elif gc:
            vaults.collect(build_out, page.show_garbage)
        else:
            page.show_vault(vaults.look(build_out), as_json=json)


@task(
    iterable=["why"],
    help=JSON
    | {"why": "execution log of a build, given twice: show what made the builds' actions differ"},
)
def cache(_: Context, why: list[str], json: bool = False) -> None:
    """Show what the build cache holds, how large it is, and what it did for the last builds."""
    with explained():
        from tfwright.commands import cache as caches
        from tfwright.documents import host_file
        from tfwright.terminal import cache as page

        settings = host_file.read()
        if why:
            page.show_why(caches.why(settings, why), as_json=json)
        else:
            page.show_cache(caches.look(settings), as_json=json)


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
    json: bool = False,
) -> None:
    """List the container images in the vault, or bring one; a recipe names it by its digest."""
    with explained(recipe):
        from tfwright.commands import image as images
        from tfwright.terminal import image as page

        one_of(add=add, pull=pull, build=build, containerfile=containerfile)
        job = job_of(recipe)
        if build:
            page.show_built(images.build(job, recipe), recipe)
            return
        if pull:
            found: tuple[KeptImage, ...] = (images.pull(job, recipe),)
        elif add:
            found = (images.add(file_of(add, "image --add"), job.places.vault),)
        elif containerfile:
            file = file_of(containerfile, "image --containerfile")
            found = (images.build_file(job, file),)
        else:
            found = images.listed(job.places.vault)
        page.show_images(found, as_json=json)
