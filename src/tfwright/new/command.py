"""The command new."""

from typing import TYPE_CHECKING

from invoke import Context

from tfwright.options import MACHINE, explained, task

if TYPE_CHECKING:
    from tfwright.match.ranking import Wish


@task(
    help=MACHINE
    | {
        "release": "as 2.6, 2.4.4, 1.12.0-rc0 or 2.4.0@COMMIT; default: the newest that fits",
        "bazel": "version, where neither the tree nor tfwright's tables name one",
        "like": "copy this recipe instead, without what was verified",
        "name": "with --like: the name of the copy",
        "folder": "where to write it, instead of recipes/",
    }
)
def new(
    _: Context,
    release: str = "",
    like: str = "",
    name: str = "",
    gpu: str = "",
    python: str = "",
    cuda: str = "",
    os: str = "",
    bazel: str = "",
    folder: str = "",
) -> None:
    """Write a new recipe: what is known is filled in with its source, the rest is asked for."""
    with explained():
        from pathlib import Path

        from tfwright.documents import host_file
        from tfwright.documents import recipe as recipes
        from tfwright.errors import RecipeError
        from tfwright.new import writing as making
        from tfwright.port import page

        if like:
            if not name:
                raise RecipeError("The copy needs a name", remedy="Add --name NAME.")
            # A copy keeps every pin; what was verified holds only for the original.
            page.show_new(making.copy(recipes.find(like), name, folder))
            return
        wish = _wish(gpu, python, cuda, os)
        wanted = making.wanted_of(release or _newest_release(wish))
        place = Path(folder) if folder else recipes.RECIPES
        tools = making.Tools(bazel=bazel)
        page.show_new(making.new(wish, wanted, host_file.read(), place, page.ask, tools))


def _wish(gpu: str, python: str, cuda: str, system: str) -> "Wish":
    """Return what a new recipe is for; what was not typed is as on this host."""
    from tfwright.host import probes
    from tfwright.match import ranking as match

    wish = match.wish(probes.here(), gpu=gpu, python=python, cuda=cuda, system=system)
    if gpu or cuda:
        return wish
    # A GPU in this host alone is not a wish for CUDA.
    return match.Wish(system=wish.system, machine=wish.machine, python=python)


def _newest_release(wish: "Wish") -> str:
    """Return the newest TensorFlow that fits a wish; raise RecipeError if none does."""
    from tfwright.errors import RecipeError
    from tfwright.match import ranking as match

    for need in match.needs(wish):
        if need.name == "TensorFlow":
            return need.value
    raise RecipeError(
        "No TensorFlow release was made for this combination",
        remedy="Ask for less: 'invoke match' shows what exists.",
    )
