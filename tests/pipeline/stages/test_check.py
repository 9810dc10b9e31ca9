from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_program

from tfwright.doctor import requirements
from tfwright.doctor.inventory import Finding, worst_first
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import HostTable, Recipe
from tfwright.errors import HostError, RecipeError
from tfwright.host import pythons
from tfwright.host.place import Seen
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.stages import check

FEATURES = ("JEMALLOC", "GCP", "HDFS", "S3", "KAFKA", "GDR", "VERBS", "OPENCL_SYCL", "CUDA", "MPI")
ANSWERS: dict[str, bool | str] = {
    **{f"TF_NEED_{feature}": False for feature in FEATURES},
    **dict.fromkeys(("TF_ENABLE_XLA", "TF_DOWNLOAD_CLANG", "TF_SET_ANDROID_WORKSPACE"), False),
    "CC_OPT_FLAGS": "-O2",
}


@pytest.fixture
def recipe(recipe: Recipe) -> Recipe:
    """Return the small recipe with every answer that TensorFlow 1.8 asks for."""
    return answered(recipe, ANSWERS)


@pytest.fixture(autouse=True)
def python_with_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the host's Python what Debian packs apart; the tests of doctor look for it."""
    has = Seen("headers, pip, numpy, wheel", "a test")
    monkeypatch.setattr(pythons, "installed_parts", lambda *_: has)


def answered(recipe: Recipe, answers: Mapping[str, bool | str]) -> Recipe:
    table = recipe.configure.changed(answers=answers)
    return recipe.changed(configure=table)


def for_host(job: RecipeJob, **keys: str) -> RecipeJob:
    """Return the job with a recipe that wants another host."""
    host = HostTable.model_validate({**job.recipe.host.model_dump(), **keys})
    return replace(job, recipe=job.recipe.changed(host=host))


def run(job: RecipeJob) -> object:
    return check.run(job, job.recipe)


def test_a_fitting_host_gives_the_facts_that_can_change_the_wheel(job: RecipeJob) -> None:
    facts = check.run(job, job.recipe)
    assert facts.interpreter == pythons.running_python()
    assert facts.python == pythons.version_of(pythons.running_python())
    assert facts.compiler
    assert facts.cuda is None


def test_a_compiler_that_is_named_is_a_fact_by_its_version(job: RecipeJob, tmp_path: Path) -> None:
    compilers = [tmp_path / name for name in ("gcc-11", "gcc-9", "clang")]
    for compiler in compilers:
        make_program(compiler, f"#!/bin/sh\necho {compiler.name} 1.0; echo Free\n")
    gcc, nvcc, clang = map(str, compilers)
    flags = (f"--action_env=CLANG_CUDA_COMPILER_PATH={clang}",)
    table = job.recipe.compile.changed(env={"CC": gcc}, flags=flags)
    named = replace(
        job,
        recipe=job.recipe.changed(compile=table),
        host_file=job.host_file.changed(compiler=Path(nvcc)),
    )
    facts = check.run(named, named.recipe)
    assert facts.named == ("gcc-11 1.0", "gcc-9 1.0", "clang 1.0")


def test_a_recipe_for_a_mac_is_refused_on_another_system(job: RecipeJob) -> None:
    with fails(HostError, "publish", "Darwin-sparc", "--until"):
        run(for_host(job, system="Darwin", machine="sparc"))


def test_up_to_source_another_system_is_no_more_than_a_note(
    job: RecipeJob, notes: list[str]
) -> None:
    run(replace(for_host(job, system="Darwin", machine="sparc"), until="source"))
    assert any("wanted: Darwin-sparc" in text for text in notes)


def test_answers_that_configure_would_miss_are_named_before_anything_is_fetched(
    job: RecipeJob,
) -> None:
    without = answered(job.recipe, {"TF_NEED_CUDA": False})
    with fails(RecipeError, "answer"):
        run(replace(job, recipe=without))


def test_up_to_source_answers_are_only_noted(job: RecipeJob, notes: list[str]) -> None:
    wrong = answered(job.recipe, {**ANSWERS, "TF_NEED_MPI": "perhaps"})
    run(replace(job, recipe=wrong, until="source"))
    assert any("'perhaps' is neither true nor false" in text for text in notes)


def test_a_pip_that_does_not_read_the_platform_tag_is_named_before_the_compile(
    job: RecipeJob,
) -> None:
    package = job.recipe.package.changed(platform="manylinux_2_31_x86_64")
    verify = job.recipe.verify.changed(requirements=("pip==19.3",))
    tables = {"package": package, "verify": verify}
    old = replace(job, recipe=job.recipe.changed(**tables))
    # No pip takes part in a build that stops earlier.
    run(replace(old, until="seal"))
    with fails(RecipeError, "19.3", "verify.requirements"):
        run(old)


def test_all_findings_come_at_once_the_earliest_obstacle_first(job: RecipeJob) -> None:
    with pytest.raises(HostError) as caught:
        run(for_host(job, system="Darwin", machine="sparc", python="3.2"))
    first, second = (
        caught.value.what.index("1. this host is"),
        caught.value.what.index("2. no Python 3.2"),
    )
    assert first < second
    assert "pyenv install 3.2" in caught.value.what


def test_findings_are_sorted_by_the_stage_they_block_and_notes_come_last() -> None:
    findings = [Finding(stage, "", "", blocks=stage) for stage in ("", "compile", "check", "fetch")]
    assert [finding.blocks for finding in worst_first(findings)] == [
        "check",
        "fetch",
        "compile",
        "",
    ]
    # There is no use in mending the rest on a host that cannot be the right one.
    other = Finding("this host is Linux", "", "", blocks="configure", lasting=True)
    assert worst_first([*findings, other])[0] == other


@pytest.mark.parametrize(
    ("until", "blocked"), [("source", False), ("configure", True), ("publish", True)]
)
def test_a_finding_blocks_only_builds_that_reach_its_stage(until: str, *, blocked: bool) -> None:
    assert Finding("", "", "", blocks="configure").stops(until) is blocked


def test_a_note_blocks_nothing() -> None:
    assert not Finding("", "", "").stops("publish")


def test_the_obstacle_is_the_worst_finding_in_a_few_words(
    job: RecipeJob, recipe: Recipe, tmp_path: Path
) -> None:
    host_file = HostFile(build_out=tmp_path)
    assert (
        requirements.obstacle(for_host(job, system="Darwin", python="3.2").recipe, host_file)
        == "this host is Linux-x86_64"
    )
    assert requirements.obstacle(recipe, host_file) is None


def test_what_stops_nothing_is_not_listed_under_what_stops_the_build(
    job: RecipeJob, notes: list[str]
) -> None:
    old = job.recipe.bazel.changed(version="0.10.0")
    python = job.recipe.host.changed(python="3.11", machine="sparc")
    recipe = job.recipe.changed(bazel=old, host=python)
    with pytest.raises(HostError) as caught:
        run(replace(job, recipe=recipe))
    assert "for TensorFlow 1.8" not in caught.value.what
    assert any("Python 3.11 for TensorFlow 1.8" in note for note in notes)
