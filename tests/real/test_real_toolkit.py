"""A recipe's own ./configure on the real CUDA that the recipe pins.

Wanted: a host file whose build_out has what `invoke toolkit --recipe linux-r2.6-cuda11.2` brings,
and TFWRIGHT_TENSORFLOW_MIRRORS, as for test_configure.py. Bazel is simulated: configure does no
more than ask for its version.
"""

from pathlib import Path

import pytest
from tests.real.configured.site import bazel_for, python_for
from tests.real.configured.versions import check_out

from tfwright.documents import host_file
from tfwright.documents import recipe as recipes
from tfwright.pipeline.job import BuildRequest
from tfwright.pipeline.results import HostFacts, Inputs, Programs, Tree
from tfwright.pipeline.stages import configure

pytestmark = [pytest.mark.real, pytest.mark.slow]
RECIPE = recipes.read("linux-r2.6-cuda11.2")


def test_configure_of_2_6_accepts_the_real_cuda_11_2(tmp_path: Path) -> None:
    host = host_file.read().of(RECIPE)
    if not host.cuda or not host.compiler:
        pytest.skip(
            f"no toolkit: run 'invoke toolkit --recipe {RECIPE.name}' first"
        )
    found = host.model_copy(update={"build_out": tmp_path / "out"})
    job = BuildRequest(recipe=RECIPE, host_file=found)
    job.places.home.mkdir(parents=True)
    python = python_for(RECIPE.host.python, numpy=False)
    facts = HostFacts(
        system="Linux",
        machine="x86_64",
        glibc="",
        interpreter=python,
        python=RECIPE.host.python,
        compiler="",
        cuda=host.cuda,
        cudnn=host.cudnn,
    )
    commit = RECIPE.source.commit
    checkout = check_out(commit, tmp_path / "tree")
    bazel = bazel_for(RECIPE.bazel.version, tmp_path)
    programs = Programs(bazel=bazel, bazel_origin="here", python=python)
    inputs = Inputs(mirror=checkout, commit=commit, epoch=1, programs=programs)
    release = RECIPE.source.release
    tree = Tree(
        path=checkout, commit=commit, epoch=1, release=release, content=""
    )
    configured = configure.run(job, RECIPE, facts, inputs, tree)
    written = configured.bazelrc.path.read_text("utf-8")
    assert f'CUDA_TOOLKIT_PATH="{host.cuda}"' in written
    # This release follows the links of the compiler's path.
    assert f'GCC_HOST_COMPILER_PATH="{host.compiler.resolve()}"' in written
