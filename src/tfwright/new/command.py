"""The command new."""

from pathlib import Path

from invoke import Context

from tfwright.options import JSON, MACHINE, task
from tfwright.terminal.answer import Answer, Shown


@task(
    needs={"name": "like"},
    help=JSON
    | MACHINE
    | {
        "release": "as 2.6, 2.4.4, 1.12.0-rc0 or 2.4.0@COMMIT; default: the newest that fits",
        "cpu": "the most that an x86-64 CPU has that the wheel is for: sse4.2, avx, avx2",
        "bazel": "version, where neither the tree nor tfwright's tables name one",
        "like": "copy this recipe instead, without what was verified",
        "name": "the name of the copy",
        "folder": "where to write it, instead of recipes/",
    },
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
    cpu: str = "",
    bazel: str = "",
    folder: str = "",
) -> Shown:
    """Write a new recipe: what is known is filled in with its source, the rest is asked for."""
    from tfwright.documents import host_file
    from tfwright.documents import recipe as recipes
    from tfwright.documents.home import INSTALLED
    from tfwright.errors import RecipeError
    from tfwright.host import probes
    from tfwright.match import ranking as match
    from tfwright.new import writing as making
    from tfwright.port import page

    if like:
        if not name:
            raise RecipeError("The copy needs a name", remedy="Add --name NAME.")
        # A copy keeps every pin; what was verified holds only for the original.
        return Answer(
            making.copy(
                recipes.find(like), name, folder or (str(recipes.RECIPES) if INSTALLED else "")
            ),
            page.show_new,
        )
    # What was not typed is as on this host. A GPU in it alone is not a wish for CUDA.
    wish = match.wish(probes.here(), gpu=gpu, python=python, cuda=cuda, system=os, cpu=cpu)
    if not (gpu or cuda):
        wish = match.Wish(system=wish.system, machine=wish.machine, python=python, cpu=cpu)
    if not release:
        fitting = (need.value for need in match.needs(wish) if need.name == "TensorFlow")
        release = next(fitting, "")
    if not release:
        raise RecipeError(
            "No TensorFlow release was made for this combination",
            remedy="Ask for less: 'invoke match' shows what exists.",
        )
    wanted = making.wanted_of(release)
    place = Path(folder) if folder else recipes.RECIPES
    made = making.new(wish, wanted, host_file.read(), place, page.ask, bazel)
    return Answer(made, page.show_new)
