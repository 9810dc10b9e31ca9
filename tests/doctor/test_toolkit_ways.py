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


@pytest.fixture
def recipe() -> Recipe:
    """Return a recipe that pins Debian's packages of CUDA 11.8, and no other way."""
    read = recipes.read("demo-cuda")
    assert read.toolkit.cuda is not None
    return read.changed(toolkit=read.toolkit.changed(cuda=read.toolkit.cuda.changed(archives={})))


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
    toolkit = recipe.toolkit.changed(cuda=table.changed(archives=archives))
    lines = toolkit_ways.remedy(recipe.changed(toolkit=toolkit), "cuda", play({})).splitlines()
    assert "# from developer.download.nvidia.com; names the licences" in lines[0]
    closed = "# not possible here: from Debian bookworm by apt (this host has no apt-get)"
    assert lines[-1] == closed


@pytest.mark.parametrize(
    ("place", "version", "offered"),
    [("/usr/local/cuda-11.8", "11080", True), ("/usr/local/cuda", "12040", False)],
)
def test_an_installed_cuda_is_offered_if_it_is_of_the_right_version(
    recipe: Recipe, play: Player, place: str, version: str, *, offered: bool
) -> None:
    header = {f"{place}/include/cuda.h": f"#define CUDA_VERSION {version}\n"}
    text = toolkit_ways.remedy(recipe, "cuda", play({"files": header, "programs": APT}))
    assert (f"invoke toolkit --recipe demo-cuda --cuda {place} " in text) is offered
    assert ("/usr/local/cuda" in text) is offered


def test_the_bundled_kernel_needs_its_cuda_as_tensorflow_does(
    recipe: Recipe, play: Player, tmp_path: Path
) -> None:
    host = play({"programs": {**APT, "/usr/bin/uname": {"-sm": "Linux x86_64"}}})
    found = requirements.examine(recipe, HostFile(build_out=tmp_path), host)
    blocking = [str(finding) for finding in found if finding.blocks == "configure"]
    assert "no CUDA at /usr/local/cuda; wanted: CUDA 11.8" in blocking
    assert not [text for text in blocking if "cuDNN" in text]
