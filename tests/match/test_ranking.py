import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.failing import fails
from tests.making import Read

from tfwright.build import verified
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.errors import RecipeError
from tfwright.host.probes import Host
from tfwright.match import official, page, pins, ranking
from tfwright.match import wish as wishes
from tfwright.match.ranking import Candidate
from tfwright.match.wish import Wish

Reader = Callable[[str], dict[str, Any]]
Player = Callable[[dict[str, Any]], Host]
Rank = Callable[[Wish], list[Candidate]]


@pytest.fixture
def ubuntu(described: Reader, play: Player) -> Host:
    """Return the simulated workstation: Linux, glibc 2.27, a GTX 1080 Ti."""
    return play(described("ubuntu-18.04-cuda10.1"))


@pytest.fixture(scope="module")
def bundled() -> list[Recipe]:
    """Return the recipes that tfwright ships."""
    return [recipes.read(name) for name in recipes.names()]


@pytest.fixture
def rank(bundled: list[Recipe], ubuntu: Host) -> Rank:
    """Return what compares these recipes with a wish, on that workstation."""
    return lambda wanted: ranking.rank(bundled, wanted, ubuntu, HostFile(), verified.stale)


def fitting(ranked: list[Candidate]) -> list[str]:
    return [one.recipe for one in ranked if not one.differs]


def test_without_a_question_it_is_about_this_host(ubuntu: Host) -> None:
    assert wishes.wish(ubuntu) == Wish(system="Linux", machine="x86_64", gpu="6.1")


def test_another_system_is_not_completed_with_what_this_host_has(ubuntu: Host) -> None:
    assert wishes.wish(ubuntu, system="Darwin", gpu="sm_30") == Wish(system="Darwin", gpu="3.0")


def test_cpu_and_glibc_of_this_host_complete_a_wish_for_a_wheel(ubuntu: Host) -> None:
    found = wishes.wish_of_wheels(wishes.wish(ubuntu), ubuntu)
    assert (found.cpu, found.glibc) == ("avx2", ubuntu.glibc.value)
    found = wishes.wish_of_wheels(wishes.wish(ubuntu, glibc="2.17", cpu="sse4.2"), ubuntu)
    assert (found.cpu, found.glibc) == ("sse4.2", "2.17")
    mac = wishes.wish(ubuntu, system="Darwin")
    assert wishes.wish_of_wheels(mac, ubuntu) == mac


@pytest.mark.parametrize(
    ("asked", "part", "read"),
    [
        ({"python": "cp312"}, "python", "3.12"),
        ({"python": "3.12.3"}, "python", "3.12"),
        ({"python": "27"}, "python", "2.7"),
        ({"cuda": "12.8.1"}, "cuda", "12.8"),
        ({"gpu": "sm120"}, "gpu", "12.0"),
        ({"gpu": "Compute Capability 8.6"}, "gpu", "8.6"),
        ({"gpu": "CC 8.6"}, "gpu", "8.6"),
        ({"gpu": "2x RTX 3090"}, "gpu", "8.6"),
        ({"machine": "arm64"}, "machine", "aarch64"),
        ({"system": "macos", "machine": "aarch64"}, "machine", "arm64"),
        ({"system": "win", "machine": "x64"}, "machine", "AMD64"),
        ({"macos": "12.6.1"}, "system", "Darwin"),
        ({"system": "WSL2"}, "system", "Linux"),
        ({"system": "linux"}, "system", "Linux"),
        ({"system": "win"}, "system", "Windows"),
        ({"system": "osx"}, "system", "Darwin"),
        ({"gpu": "1080 Ti"}, "gpu", "6.1"),
        # A wish for none is not completed with the GPU of this host.
        ({}, "gpu", "6.1"),
        ({"gpu": "none"}, "gpu", ""),
    ],
)
def test_what_people_write_is_read_as_tfwright_writes_it(
    asked: dict[str, str], part: str, read: str, ubuntu: Host
) -> None:
    assert vars(wishes.wish(ubuntu, **asked))[part] == read


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        ({"machine": "arm64", "cpu": "avx"}, "--cpu"),
        ({"system": "mac", "glibc": "2.17"}, "--glibc"),
        ({"system": "Linux", "macos": "12"}, "--macos"),
    ],
)
def test_what_a_machine_cannot_have_is_refused(
    asked: dict[str, str], option: str, ubuntu: Host
) -> None:
    with fails(RecipeError, option):
        wishes.wish(ubuntu, **asked)


def test_a_gpu_is_served_by_code_for_its_own_major_version_only(rank: Rank) -> None:
    blackwell = fitting(rank(Wish(system="Linux", machine="x86_64", gpu="12.0")))
    older = [name for name in blackwell if name.startswith("linux-r2.20-cuda12.8-sm120")]
    # One for each Python from 3.10 to 3.13.
    assert len(older) == 4
    assert len({*blackwell} - {*older}) == 5  # the same of 2.21, and one for CUDA 13
    assert "linux-r0.11-cuda8.0" in fitting(rank(Wish(system="Linux", gpu="3.0")))


def test_code_for_12_0_serves_a_gpu_of_12_1_on_its_own_processor(rank: Rank) -> None:
    spark = Wish(system="Linux", machine="aarch64", gpu="12.1")
    assert fitting(rank(spark)) == ["linux-r2.20-cuda12.8-sm121"]


def test_a_recipe_whose_cuda_compiles_for_a_gpu_can_name_it_in_a_copy(rank: Rank) -> None:
    old = rank(Wish(system="Linux", machine="x86_64", gpu="8.0", release="1.15", python="3.8"))
    assert old[0].recipe == "linux-nv1.15-cuda11.8"
    assert old[0].differs == ("code for 8.6 only; a copy can name 8.0",)
    assert old[0].copy == "8.0"
    newer = rank(Wish(system="Linux", machine="x86_64", gpu="12.0", release="2.6"))
    (r26,) = [one for one in newer if one.recipe == "linux-r2.6-cuda11.2"]
    assert not r26.copy
    fermi = rank(Wish(system="Linux", machine="x86_64", gpu="2.0"))
    assert not any(one.copy for one in fermi)


def test_a_recipe_for_the_machine_is_nearer_than_any_for_another(rank: Rank) -> None:
    found = rank(Wish(system="Linux", machine="aarch64", python="3.10"))
    assert found[0].recipe == "linux-r2.20-cuda12.8-sm121"
    assert [one.elsewhere for one in found] == sorted(one.elsewhere for one in found)


def test_cuda_and_python_name_one_recipe(rank: Rank) -> None:
    assert fitting(rank(Wish(system="Linux", cuda="10.1", python="3.7"))) == ["linux-r2.1-cuda10.1"]


def test_the_nearest_say_all_that_differs_and_another_system_is_far(rank: Rank) -> None:
    ranked = rank(Wish(system="Darwin", gpu="6.1", python="3.7", cuda="10.1"))
    assert ranked[0].recipe == "macos-r1.8-cuda9.2"
    assert ranked[0].differs == ("Python 3.6", "CUDA 9.2")
    assert all(one.elsewhere for one in ranked[2:])


def test_a_wheel_without_a_promise_may_need_the_glibc_of_the_host_that_builds_it(
    rank: Rank,
) -> None:
    ranked = {one.recipe: one for one in rank(Wish(system="Linux", cuda="10", glibc="2.17"))}
    assert ranked["linux-r2.1-cuda10.1"].differs == ("glibc 2.27 if built here",)
    assert "linux-r2.1-cuda10.1" in fitting(rank(Wish(system="Linux", cuda="10", glibc="2.27")))


def test_a_wheel_that_bazels_own_compiler_links_needs_the_glibc_of_its_sysroot(rank: Rank) -> None:
    ranked = {one.recipe: one for one in rank(Wish(system="Linux", cuda="13", glibc="2.17"))}
    assert "glibc 2.27" in ranked["linux-r2.21-cuda13.0"].differs


def test_the_demo_is_no_tensorflow_to_be_found(rank: Rank) -> None:
    assert "demo" not in [one.recipe for one in rank(Wish())]


def test_the_answer_is_readable_and_says_when_nothing_fits(rank: Rank, out: Read) -> None:
    wanted = Wish(system="Linux", gpu="3.0", python="2.7")
    found = official.matches(wanted), rank(wanted), pins.new_recipe_pins(wanted), ()
    page.show_matches(page.MatchAnswer(wanted, *found))
    said = out()
    assert said.startswith("wanted: Linux, GPU of compute capability 3.0, Python 2.7\n\n")
    assert "\n\nNo recipe fits\n\nThe nearest others" in said
    # Each source stands once, below what was taken from it.
    assert re.search(r"\n  linux-r0.11-cuda8.0 +Python 3.5\n", said)
    assert re.search(r"\n  host.gcc +\S.*\[(\d)\]\n(.*\n)*  \[\1\] https://", said)


def test_a_gpu_that_was_given_by_its_name_says_where_its_capability_is_from(ubuntu: Host) -> None:
    named = wishes.wish(ubuntu, gpu="1080 Ti").named
    assert named.startswith("1080 Ti: https://developer.nvidia.com/cuda-")


@pytest.mark.parametrize(
    ("name", "machine"), [("Jetson Orin", "aarch64"), ("GH200", "aarch64"), ("H100", "x86_64")]
)
def test_a_gpu_that_is_a_whole_machine_brings_its_processor(
    name: str, machine: str, ubuntu: Host, rank: Rank
) -> None:
    wanted = wishes.wish(ubuntu, gpu=name)
    assert wanted.machine == machine
    for candidate in rank(wanted):
        assert candidate.differs or candidate.recipe.endswith(("sm121", "cuda13.0"))


def test_other_gpus_are_nearer_than_no_cuda_and_new_releases_than_old_ones(
    ubuntu: Host, rank: Rank
) -> None:
    wanted = wishes.wish(ubuntu, gpu="H100")
    ranked = [candidate.recipe for candidate in rank(wanted) if not candidate.elsewhere]
    assert ranked[:2] == ["linux-r2.21-cuda13.0", "linux-r2.21-cuda12.8-sm120"]
    assert ranked.index("linux-r0.11-cuda8.0") < ranked.index("linux-r1.12-cpu")


def test_a_release_is_a_wish_too_and_a_candidate_counts_as_its_release(
    ubuntu: Host, rank: Rank
) -> None:
    wanted = wishes.wish(ubuntu, release="v1.8.0-rc1")
    assert wanted.release == "1.8"
    assert "TensorFlow 1.8" in str(wanted)
    assert pins.new_recipe_pins(wanted)[0].value == "1.8"
    for candidate in rank(wanted):
        of_release = "-r1.8-" in candidate.recipe
        other = any(text.startswith("TensorFlow ") for text in candidate.differs)
        assert other is not of_release


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("gpu", "foo", "foo"),
        ("gpu", "RTX 309", "RTX 3090"),
        ("gpu", "Tesla V10", "Tesla V100"),
        ("gpu", "RTX 3090, Tesla K80", "more than one GPU"),
        ("gpu", "Voodoo 2", "https://developer.nvidia.com/cuda-gpus"),
        ("python", "3", "--python"),
        ("cuda", "ten", "--cuda"),
        ("cuda", "new", "--cuda"),
        ("glibc", "x", "--glibc"),
        ("glibc", "musl", "--glibc"),
        ("system", "BSD", "--os"),
        ("release", "1.8x", "1.8x"),
        ("cpu", "avx3", "avx3"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_option_or_what_is_near(
    option: str, value: str, named: str, ubuntu: Host
) -> None:
    with fails(RecipeError, named, value):
        wishes.wish(ubuntu, **{option: value})
