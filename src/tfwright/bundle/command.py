"""The command bundle."""

import json
from pathlib import Path

from invoke import Context

from tfwright.options import JSON, RECIPE, check_exclusive, job_of, required_file, resuming, task
from tfwright.terminal.answer import Answer, Shown


@task(
    iterable=["add"],
    needs={"into": "unpack"},
    # What to type again after an interruption differs for the two directions.
    resumes=("recipe", "output", "add", "with_toolkit", "unpack", "into"),
    help=RECIPE
    | JSON
    | {
        "output": "the file to write",
        "add": "a further file to carry, such as CUDA's installer; may be repeated",
        "unpack": "verify this bundle, and put its files where 'invoke build --offline' finds them",
        "lacking": "on a worker: list what it lacks of the inputs for this folder",
        "with-toolkit": "add the recipe's packages of CUDA; their licences must allow it",
        "into": "directory to build in, instead of the host file's build_out",
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
) -> Shown:
    """Pack everything that a recipe's build needs into one file, or unpack such a file.

    A host without a network unpacks it and builds with --offline.
    """
    from tfwright.bundle import packing, unpacking
    from tfwright.documents import host_file
    from tfwright.documents import recipe as recipes
    from tfwright.errors import RecipeError
    from tfwright.terminal.console import Terminal
    from tfwright.vault import page
    from tfwright.workers import supply

    check_exclusive(unpack=unpack, output=output, lacking=lacking)
    if lacking:
        # For the host that sends it: JSON on one line.
        missing = supply.missing_members(Path(lacking), host_file.read())
        return Answer(missing, lambda paths: print(json.dumps(paths)))
    # A folder holds inputs that another host sends to this one, its worker.
    if unpack and Path(unpack).is_dir():
        supply.unpack_inputs(Path(unpack), host_file.read(), Terminal())
        return None
    if unpack:
        # Absolute, since Bazel and ./configure write the place down.
        build_out = Path(into).resolve() if into else host_file.read().build_out
        file = required_file(unpack, "bundle --unpack")
        return Answer(unpacking.unpack(file, build_out, Terminal()), page.show_bundle)
    if not output:
        raise RecipeError(
            "The bundle needs a file name",
            remedy=f"Name it: {resuming('bundle', recipe=recipe)} --output FILE",
        )
    manifest = packing.pack(
        job_of(recipe),
        recipes.find(recipe),
        Path(output),
        [Path(file) for file in add],
        with_toolkit=with_toolkit,
    )
    return Answer(manifest, page.show_bundle)
