"""What plan says about a tree that Bazel would compile twice."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.build import plan
from tfwright.documents.host_file import HostFile, OtherBazel
from tfwright.documents.recipe import TENSORFLOW_TARGET, BazelTable, CompileTable, HostTable
from tfwright.pipeline import engine
from tfwright.pipeline.job import RecipeJob
from tfwright.tools import files
from tfwright.tools.bazel import binary as bazels

BUILD = """\
sh_binary(name = "build_pip_package", data = [":tool"])
py_binary(name = "tool", srcs = ["tool.py"], python_version = "PY2")
"""
JOINED = ("--distinct_host_configuration=false",)


@pytest.fixture
def job(job: RecipeJob) -> RecipeJob:
    """Return a job whose tree is there, with one program for Python 2."""
    files.write(job.places.tree / "tensorflow/tools/pip_package/BUILD", BUILD)
    return of_tensorflow(job)


def of_tensorflow(
    job: RecipeJob, *flags: str, bazel: str = "0.26.1", python: str = "3.8"
) -> RecipeJob:
    tables = {
        "compile": CompileTable(target=TENSORFLOW_TARGET, flags=flags),
        "bazel": BazelTable(version=bazel),
        "host": HostTable(system="any", machine="any", python=python),
    }
    return replace(job, recipe=job.recipe.changed(**tables))


def doubled(job: RecipeJob) -> list[str]:
    return [text for _, text in engine.stage_named("compile").warnings(job)]


def test_both_reasons_for_compiling_twice_are_given(job: RecipeJob) -> None:
    tools, programs = doubled(job)
    assert "--distinct_host_configuration=false" in tools
    assert programs.startswith("Programs for Python 2 in the wheel (1) have")
    assert programs.endswith("tensorflow/tools/pip_package/BUILD:2")


def test_a_wheel_for_python_2_wants_its_programs_in_python_2(job: RecipeJob) -> None:
    assert not doubled(of_tensorflow(job, *JOINED, python="2.7"))


def test_before_bazel_0_25_python_2_is_not_a_second_configuration(job: RecipeJob) -> None:
    assert not doubled(of_tensorflow(job, *JOINED, bazel="0.24.1"))


def test_where_all_programs_are_for_python_3_only_the_tools_are_compiled_twice(
    job: RecipeJob,
) -> None:
    build = job.places.tree / "tensorflow/tools/pip_package/BUILD"
    files.write(build, BUILD.replace("PY2", "PY3"))
    assert [text[:17] for text in doubled(job)] == ["The programs that"]


def test_the_trees_own_bazelrc_counts_as_the_recipes_flags_do(job: RecipeJob) -> None:
    files.write(job.places.tree / ".bazelrc", f"build {JOINED[0]}\n")
    assert [text[:21] for text in doubled(job)] == ["Programs for Python 2"]


def test_without_a_tree_nothing_is_said(job: RecipeJob) -> None:
    files.remove(job.places.tree)
    assert not doubled(job)


def test_of_a_bundled_tree_which_has_little_to_compile_nothing_is_said(job: RecipeJob) -> None:
    source = job.recipe.source.changed(url="bundled:demo")
    job = replace(job, recipe=job.recipe.changed(source=source))
    assert not doubled(job)


def test_a_bazel_in_place_of_the_pinned_one_is_warned_of_with_the_flags_that_it_lacks(
    tmp_path: Path,
) -> None:
    binary = make_file(tmp_path / "bazel", "")
    other = OtherBazel(path=binary, version="4.2.3")
    settings = HostFile(build_out=tmp_path / "out", bazels={"0.26.1": other})
    job = RecipeJob.of("demo", settings)
    assert job.recipe.bazel.version == "4.2.3"
    assert job.pinned_bazel == "0.26.1"
    assert settings.bazel("4.2.3") == binary
    (series,) = plan.other_bazel(job)
    assert "Bazel 4.2.3 of another series" in series

    stored = bazels.put(binary, "4.2.3", bazels.here(), job.places.vault, "the host file")
    known = {"startup": {}, "build": {"config": "", "copt": "a string", "cache": ""}}
    files.write(stored.path.with_name("options.json"), json.dumps(known))
    bazelrc = (
        "build --copt=-O2 --experimental_x=false --nocache\nbuild:a --config=b\ntry-import x\n"
    )
    files.write(job.places.tree / ".bazelrc", bazelrc)
    (_, lacking) = plan.other_bazel(job)
    assert lacking.endswith("flags of .bazelrc: --experimental_x")
    assert not list(plan.other_bazel(RecipeJob.of("demo", HostFile(build_out=tmp_path))))
