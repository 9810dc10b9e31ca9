"""A recipe's own ./configure on the real CUDA that the recipe pins.

Wanted: a host file whose build_out has what `invoke toolkit --recipe linux-r2.6-cuda11.2` brings,
and TFWRIGHT_TENSORFLOW_MIRRORS, as for test_configure.py. A Bazel that the host file does not name
is simulated, since configure does no more than ask for its version.
"""

from pathlib import Path

import pytest
from tests.failing import fails
from tests.real.configured.site import bazel_for, python_for
from tests.real.configured.versions import check_out
from tests.results import facts_of, inputs_of, tree_of

from tfwright.documents import host_file
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.errors import TfwrightError
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.stage import Artefact
from tfwright.pipeline.stages import configure

pytestmark = [pytest.mark.real, pytest.mark.slow]
RECIPE = recipes.read("linux-r2.6-cuda11.2")


NEWER = "4.2.3"


def test_configure_of_2_6_accepts_the_real_cuda_11_2(tmp_path: Path) -> None:
    bazel = bazel_for(RECIPE.bazel.version, tmp_path)
    host = with_toolkit()
    written = configured(RECIPE, host, bazel, tmp_path)
    assert f'CUDA_TOOLKIT_PATH="{host.cuda}"' in written
    # This release follows the links of the compiler's path.
    assert host.compiler
    assert f'GCC_HOST_COMPILER_PATH="{host.compiler.resolve()}"' in written


def test_configure_of_2_6_takes_a_real_newer_bazel_only_where_the_recipe_says_so(
    tmp_path: Path,
) -> None:
    host = with_toolkit()
    binary = host.bazel(NEWER)
    if binary is None:
        pytest.skip(f"no Bazel {NEWER} in [bazels] of the host file")
    bazel = Artefact.of(binary)
    with fails(TfwrightError, "3.99.0"):
        configured(pinning(NEWER), host, bazel, tmp_path / "refused")
    told = pinning(NEWER, TF_IGNORE_MAX_BAZEL_VERSION=True)
    written = configured(told, host, bazel, tmp_path / "told")
    assert f'CUDA_TOOLKIT_PATH="{host.cuda}"' in written


def with_toolkit() -> HostFile:
    """Return the host file, with the toolkit that the recipe pins."""
    host = host_file.read().of(RECIPE)
    if not host.cuda or not host.compiler:
        pytest.skip(f"no toolkit: run 'invoke toolkit --recipe {RECIPE.name}' first")
    return host


def pinning(bazel: str, **answers: bool) -> Recipe:
    """Return the recipe with another Bazel and more answers."""
    table = RECIPE.configure
    return RECIPE.changed(
        bazel=RECIPE.bazel.changed(version=bazel),
        configure=table.changed(answers={**table.answers, **answers}),
    )


def configured(recipe: Recipe, host: HostFile, bazel: Artefact, folder: Path) -> str:
    """Run the recipe's configure; return what it writes for Bazel."""
    found = host.changed(build_out=folder / "out")
    job = RecipeJob(recipe=recipe, host_file=found)
    job.places.home.mkdir(parents=True)
    python = python_for(recipe.host.python, numpy=False)
    assert host.cuda
    facts = facts_of(python, glibc="", python=recipe.host.python, cuda=host.cuda, cudnn=host.cudnn)
    pinned = {"commit": recipe.source.commit, "epoch": 1}
    checkout = check_out(recipe.source.commit, folder / "tree")
    inputs = inputs_of(checkout, bazel, python, **pinned)
    tree = tree_of(job, path=checkout, release=recipe.source.release, **pinned)
    result = configure.run(job, recipe, facts, inputs, tree)
    return result.bazelrc.path.read_text("utf-8")
