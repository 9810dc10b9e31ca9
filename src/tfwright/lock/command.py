"""The commands about the inputs of a recipe: fetch, lock, pin."""

from functools import partial
from typing import TYPE_CHECKING

from invoke import Context

from tfwright.options import JSON, OFFLINE, RECIPE, job_of, task
from tfwright.printable import shell_word
from tfwright.terminal import text
from tfwright.terminal.answer import Answer, Shown

if TYPE_CHECKING:
    from tfwright.lock.packages import Pinned


@task(
    iterable=["add", "verify"],
    help=RECIPE
    | JSON
    | {
        "add": "a further package of the build, as numpy or numpy==1.14.5",
        "verify": "a package that the wheel needs, as 'tensorboard>=1.12,<1.13'",
    },
)
def pin(_: Context, add: list[str], verify: list[str], recipe: str = "demo") -> Shown:
    """Resolve and pin the packages of a recipe, and write its missing checksums."""
    from tfwright.documents import host_file
    from tfwright.documents import recipe as recipes
    from tfwright.lock import checksums, packages
    from tfwright.terminal import console
    from tfwright.terminal.console import Terminal

    # Before the recipe is read as a whole: without these checksums it does not load.
    path = recipes.find(recipe, to_write=True)
    if path.is_file():
        checksums.pin(path, host_file.read(), Terminal())
    job = job_of(recipe, complete=packages.remove_open)
    with console.working("pinning"):
        pinned = packages.pin(job, path, add, verify)
    return Answer(pinned, show_pinned)


def show_pinned(pinned: "Pinned") -> None:
    """Print what was resolved; the recipe's file on stdout."""
    from tfwright.documents import composing

    for key, pins in pinned.lists.items():
        text.tell(f"  {key}: {text.counted(len(pins), 'package')}")
    for change in pinned.changes:
        text.tell(f"    {change}")
    if pinned.bazel:
        text.tell(f"  bazel.sha256: {pinned.bazel}")
    others = composing.other_paths(pinned.path)
    text.next_commands(*(f"invoke pin --recipe {shell_word(str(other))}" for other in others))
    print(pinned.path)


@task(help=RECIPE | JSON)
def lock(_: Context, recipe: str = "demo") -> Shown:
    """Write the lock file next to a recipe: every input by its checksum.

    From then on a build refuses any other input.
    """
    from tfwright.documents import recipe as recipes
    from tfwright.lock import inputs
    from tfwright.vault import page

    # Next to the recipe, and committed with it.
    path = recipes.find(recipe, to_write=True).with_suffix(".lock")
    return Answer(
        inputs.write(job_of(recipe), path),
        partial(page.show_lock, path),
        lambda lock: {"path": path, **lock.model_dump()},
    )


@task(help=RECIPE | OFFLINE | {"everything": "download for all recipes in recipes/"})
def fetch(
    _: Context, recipe: str = "demo", everything: bool = False, offline: bool = False
) -> None:
    """Download all inputs of a recipe into the vault; retry what failed before."""
    from tfwright.build import page
    from tfwright.documents import recipe as recipes
    from tfwright.pipeline import engine

    # In turn: inputs that recipes share are then downloaded once.
    for name in recipes.names() if everything else (recipe,):
        # Again, also where a stamp holds: a mirror may have been added for what was missing.
        job = job_of(name, until="fetch", again="fetch", offline=offline)
        page.show_start(job)
        page.show_result(job, engine.build(job).last)
