"""What doctor says about the ways to a toolkit, on small simulated hosts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tfwright.doctor import requirements
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.host.probes import Host
from tfwright.toolkit import ways as toolkit_ways

Player = Callable[[dict[str, Any]], Host]
APT = {"/usr/bin/apt-get": {"*": ""}}
CUDA_H = "#define CUDA_VERSION 11080\n"


@pytest.fixture
def recipe() -> Recipe:
    """Return a recipe that pins Debian's packages of CUDA 11.8, and no other way."""
    read = recipes.read("demo-cuda")
    assert read.toolkit.cuda is not None
    debian = read.toolkit.cuda.changed(archives={})
    toolkit = read.toolkit.changed(cuda=debian)
    return read.changed(toolkit=toolkit)


def test_an_open_way_is_named_with_the_commands(recipe: Recipe, play: Player) -> None:
    lines = toolkit_ways.remedy(recipe, "cuda", play({"programs": APT})).splitlines()
    assert lines[0] == (
        "invoke toolkit --recipe demo-cuda   # from Debian bookworm by apt; names the licences"
    )
    assert "--licence-accepted" in lines[1]


def test_a_closed_way_says_why_and_what_opens_it(recipe: Recipe, play: Player) -> None:
    text = toolkit_ways.remedy(recipe, "compiler", play({}))
    assert "on a host with apt-get, or with the packages in the drop folder" in text


def test_open_and_closed_ways_are_listed_separately(recipe: Recipe, play: Player) -> None:
    table = recipe.toolkit.cuda
    assert table is not None
    archives = {"https://developer.download.nvidia.com/cuda.run": "0" * 64}
    both = table.changed(archives=archives)
    toolkit = recipe.toolkit.changed(cuda=both)
    recipe = recipe.changed(toolkit=toolkit)
    lines = toolkit_ways.remedy(recipe, "cuda", play({})).splitlines()
    assert "# from developer.download.nvidia.com; names the licences" in lines[0]
    assert (
        lines[-1] == "# not possible here: from Debian bookworm by apt (this host has no apt-get)"
    )


def test_an_installed_cuda_of_the_right_version_is_offered(recipe: Recipe, play: Player) -> None:
    host = play({"files": {"/usr/local/cuda-11.8/include/cuda.h": CUDA_H}, "programs": APT})
    text = toolkit_ways.remedy(recipe, "cuda", host)
    assert "invoke toolkit --recipe demo-cuda --cuda /usr/local/cuda-11.8 " in text


def test_an_installed_cuda_of_another_version_is_not_offered(recipe: Recipe, play: Player) -> None:
    other = CUDA_H.replace("11080", "12040")
    host = play({"files": {"/usr/local/cuda/include/cuda.h": other}, "programs": APT})
    assert "/usr/local/cuda" not in toolkit_ways.remedy(recipe, "cuda", host)


def test_the_bundled_kernel_needs_its_cuda_as_tensorflow_does(
    recipe: Recipe, play: Player, tmp_path: Path
) -> None:
    host = play({"programs": {**APT, "/usr/bin/uname": {"-sm": "Linux x86_64"}}})
    found = requirements.examine(recipe, HostFile(build_out=tmp_path), host)
    blocking = [str(finding) for finding in found if finding.blocks == "configure"]
    assert "no CUDA at /usr/local/cuda; wanted: CUDA 11.8" in blocking
    assert not [text for text in blocking if "cuDNN" in text]
