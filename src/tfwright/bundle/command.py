"""The command bundle."""

from collections.abc import Sequence
from pathlib import Path

from invoke import Context

from tfwright.options import RECIPE, explained, file_of, job_of, one_of, resuming, task


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
    from tfwright.bundle import packing as bundles
    from tfwright.documents import recipe as recipes
    from tfwright.errors import RecipeError
    from tfwright.vault import page

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
    from tfwright.bundle import packing as bundles
    from tfwright.documents import host_file
    from tfwright.terminal import console
    from tfwright.vault import page

    # Absolute, since Bazel and ./configure write the place down.
    build_out = Path(into).resolve() if into else host_file.read().build_out
    bundle = file_of(unpack, "bundle --unpack")
    page.show_bundle(bundles.unpack(bundle, build_out, console.Terminal()))


def _take_inputs(lacking: str, unpack: str) -> None:
    """Say what this worker lacks of the inputs in a folder, or put what is there into its vault."""
    from tfwright.documents import host_file
    from tfwright.terminal import console
    from tfwright.vault import page
    from tfwright.workers import supply

    settings = host_file.read()
    if lacking:
        page.show_lacking(supply.lacking(Path(lacking), settings))
    else:
        supply.take(Path(unpack), settings, console.Terminal())
