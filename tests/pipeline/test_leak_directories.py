from dataclasses import replace
from pathlib import Path

import pytest
from tests.results import facts_of

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import HostTable, ImageTable
from tfwright.pipeline import leak_directories
from tfwright.pipeline.job import RecipeJob
from tfwright.wheel.inspect.leaks import LeakSearch


def of_build(
    job: RecipeJob, interpreter: str = "/usr/bin/python3", **host: object
) -> dict[str, str]:
    wanted: HostTable = job.recipe.host.changed(**host)
    found = leak_directories.build_directories(job, wanted, facts_of(interpreter))
    return {directory.path: directory.what for directory in found}


def with_host_file(job: RecipeJob, **settings: str) -> RecipeJob:
    return replace(job, host_file=HostFile.model_validate(settings))


def test_all_that_a_build_works_in_is_named(job: RecipeJob) -> None:
    found, places = of_build(job), job.places
    assert found[str(places.tree)] == "the source tree"
    assert found[str(places.bazel)] == "Bazel's output base"
    assert {
        str(place)
        for place in (
            places.build_out,
            places.vault,
            places.git,
            places.home,
            places.build_out / "toolkits",
            job.host_file.cache_directory,
        )
    } <= set(found)


def test_toolkit_compiler_and_python_of_this_host_are_named(job: RecipeJob) -> None:
    job = with_host_file(
        job,
        build_out="/srv/out",
        cuda="/srv/nvidia/cuda",
        cudnn="/srv/nvidia/cudnn",
        compiler="/opt/gcc-11/usr/bin/gcc-11",
    )
    found = of_build(job, "/srv/python/3.8/bin/python3.8")
    assert found["/srv/nvidia/cuda"] == "the CUDA toolkit"
    assert found["/srv/nvidia/cudnn"] == "cuDNN"
    assert found["/opt/gcc-11/usr"] == "the compiler"
    assert found["/srv/python/3.8"] == "Python"


def test_what_is_in_the_same_place_on_every_host_is_not_named(job: RecipeJob) -> None:
    job = with_host_file(
        job, build_out="/usr/src/out", cuda="/usr/local/cuda-11.8", compiler="/usr/bin/gcc"
    )
    found = of_build(job)
    assert [path for path in found if path.startswith("/usr/local")] == []
    assert "/usr" not in found
    assert found["/usr/src/out"] == "the build_out", "only programs are"


def test_the_python_of_an_image_is_the_same_on_every_host(job: RecipeJob) -> None:
    image = ImageTable(name="example.org/image", digest=f"sha256:{'0' * 64}")
    python = "/srv/python/3.8/bin/python3.8"
    assert "/srv/python/3.8" in of_build(job, python)
    assert "/srv/python/3.8" not in of_build(job, python, image=image)


def test_a_directory_behind_a_link_is_named_by_both_of_its_paths(
    job: RecipeJob, tmp_path: Path
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    found = of_build(with_host_file(job, build_out=str(tmp_path / "link")))
    assert {str(tmp_path / name / "small/tree") for name in ("disk", "link")} <= {*found}


@pytest.mark.parametrize("build_out", ["/w", "/"])
def test_below_a_short_build_out_only_longer_directories_are_looked_for(
    job: RecipeJob, build_out: str
) -> None:
    job = with_host_file(job, build_out=build_out)
    search = LeakSearch(
        leak_directories.build_directories(job, job.recipe.host, facts_of("/usr/bin/python3"))
    )
    chance = b"\0/w/a.cc\0/small\0//\0/vault\0/git/a\0"
    assert list(search.leaks("a.so", chance, library=True)) == []
    tree = f"{job.places.tree}/a.cc".encode()
    (leak,) = search.leaks("a.so", tree, library=True)
    assert leak.directory == str(job.places.tree)
