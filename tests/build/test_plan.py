"""What plan says about a tree that Bazel would compile twice."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.build import plan
from tfwright.documents.host_file import HostFile, OtherBazel
from tfwright.documents.recipe import TENSORFLOW_TARGET, BazelTable, CompileTable, ImageTable
from tfwright.pipeline import engine
from tfwright.pipeline.job import RecipeJob
from tfwright.tools import files
from tfwright.tools.bazel import binary as bazels

JOINED = ("--distinct_host_configuration=false",)


@pytest.fixture
def job(job: RecipeJob) -> RecipeJob:
    """Return a job whose tree is there."""
    job.places.tree.mkdir(parents=True)
    return of_tensorflow(job)


def of_tensorflow(job: RecipeJob, *flags: str, bazel: str = "0.26.1") -> RecipeJob:
    tables = {
        "compile": CompileTable(target=TENSORFLOW_TARGET, flags=flags),
        "bazel": BazelTable(version=bazel),
    }
    return replace(job, recipe=job.recipe.changed(**tables))


def doubled(job: RecipeJob) -> list[str]:
    return [text for _, text in engine.stage_named("compile").warnings(job)]


def test_tools_with_a_configuration_of_their_own_are_warned_of(job: RecipeJob) -> None:
    (text,) = doubled(job)
    assert text.endswith(JOINED[0])
    assert not doubled(of_tensorflow(job, *JOINED))
    assert not doubled(of_tensorflow(job, bazel="6.1.0"))


def test_the_trees_own_bazelrc_counts_as_the_recipes_flags_do(job: RecipeJob) -> None:
    files.write(job.places.tree / ".bazelrc", f"build {JOINED[0]}\n")
    assert not doubled(job)


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

    stored = bazels.add_to_store(
        binary, "4.2.3", bazels.platform_name(), job.places.vault, "the host file"
    )
    known = {"startup": {}, "build": {"config": "", "copt": "a string", "cache": ""}}
    files.write(stored.path.with_name("options.json"), json.dumps(known))
    bazelrc = (
        "build --copt=-O2 --experimental_x=false --nocache\nbuild:a --config=b\ntry-import x\n"
    )
    files.write(job.places.tree / ".bazelrc", bazelrc)
    (_, lacking) = plan.other_bazel(job)
    assert lacking.endswith("flags of .bazelrc: --experimental_x")
    assert not list(plan.other_bazel(RecipeJob.of("demo", HostFile(build_out=tmp_path))))


def test_a_recipe_whose_image_is_not_here_is_planned_without_it(job: RecipeJob) -> None:
    image = ImageTable(name="docker.io/library/debian", digest=f"sha256:{'1' * 64}")
    host = job.recipe.host.changed(image=image)
    stages, (finding, *_) = plan.plan(replace(job, recipe=job.recipe.changed(host=host)))
    assert (finding.blocks, "--pull" in finding.remedy) == ("check", True)
    assert "follows check" in [stage.why for stage in stages]
