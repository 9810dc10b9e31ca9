"""The fetch stage: everything from outside comes in, and afterwards nothing more is asked for."""

import os
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file, make_folder
from tests.results import facts_of
from tests.upstream import bundled_commit, commit

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import FetchTable, Recipe, SubstituteTable
from tfwright.errors import HostError, SupplyError
from tfwright.pipeline.external import ExternalRules
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import HostFacts, Inputs
from tfwright.pipeline.stage import Stage
from tfwright.pipeline.stages import fetch
from tfwright.tools import files
from tfwright.tools.git import demo, mirror


@pytest.fixture
def bazel(tmp_path: Path) -> Path:
    """Make a program that ends in a zip and knows its version, as Bazel does and is."""
    path = make_file(tmp_path / "bazel-0.26.1", "#!/bin/sh\necho Build label: 0.26.1\nexit 0\n")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("A-server.jar", "")
    path.chmod(0o755)
    return path


@pytest.fixture
def job(recipe: Recipe, tmp_path: Path, bazel: Path) -> RecipeJob:
    """Return a job for the bundled tree, with a Bazel from the host file."""
    source = recipe.source.changed(url=demo.URL, branch="main", commit=bundled_commit())
    host_file = HostFile(build_out=tmp_path / "build_out", bazels={"0.26.1": bazel})
    return RecipeJob(recipe=recipe.changed(source=source), host_file=host_file, offline=True)


def run(job: RecipeJob, python: str | Path = sys.executable) -> Inputs:
    made = Stage(fetch).run(job, {HostFacts: facts_of(python)})
    assert isinstance(made, Inputs)
    return made


@pytest.mark.medium
def test_source_bazel_and_python_are_in_place_and_a_second_run_makes_the_same(
    job: RecipeJob, bazel: Path, quick_python: Path
) -> None:
    made = run(job, quick_python)
    assert made.mirror == mirror.path_of(job.places.git, demo.URL)
    assert (made.commit, made.epoch) == (bundled_commit(), 1514764800)
    assert made.bazel.sha256 == files.sha256(bazel)
    assert os.access(made.python, os.X_OK)
    assert run(job, quick_python) == made


@pytest.mark.medium
def test_what_the_wheel_requires_is_looked_for_before_anything_is_built(
    job: RecipeJob, quick_python: Path
) -> None:
    verify = job.recipe.verify.changed(requirements=("small==1.0",))
    recipe = job.recipe.changed(verify=verify)
    with fails(SupplyError, "small==1.0"):
        run(replace(job, recipe=recipe), quick_python)


@pytest.mark.medium
def test_for_another_systems_recipe_the_source_comes_and_its_programs_do_not(
    job: RecipeJob,
) -> None:
    foreign = job.recipe.host.changed(system="Darwin")
    made = run(replace(job, recipe=job.recipe.changed(host=foreign)))
    assert made.mirror.is_dir()
    with fails(HostError):
        _ = made.python


@pytest.mark.medium
def test_a_mirror_of_the_host_file_stands_in_for_the_url(job: RecipeJob, tmp_path: Path) -> None:
    source = job.recipe.source.changed(url="https://nowhere.invalid/tensorflow.git")
    host_file = job.host_file.changed(mirrors={source.url: str(tmp_path / "no mirror")})
    mine = RecipeJob(recipe=job.recipe.changed(source=source), host_file=host_file)
    with fails(SupplyError, f"file://{tmp_path}/no"):
        run(mine)


def test_the_plan_shows_the_transfer_of_the_pinned_commit(job: RecipeJob) -> None:
    (step,) = Stage(fetch).steps(job, {})
    assert str(step).endswith(f"--depth=1 --no-filter origin {job.recipe.source.commit}")


@pytest.mark.medium
def test_what_is_no_file_in_the_drop_folder_is_passed_over(job: RecipeJob, tmp_path: Path) -> None:
    drop = make_folder(tmp_path / "drop")
    (drop / "archive.zip").write_bytes(b"PK")
    mine = replace(job, host_file=job.host_file.changed(drop=drop))
    before = fetch.inputs(mine, mine.recipe.source)
    (drop / "broken").symlink_to("gone")
    os.mkfifo(drop / "pipe")
    assert fetch.inputs(mine, mine.recipe.source) == before


@pytest.mark.medium
@pytest.mark.parametrize("setting", ["mirrors", "downloads"])
def test_a_place_that_the_host_file_adds_wakes_the_stage(job: RecipeJob, setting: str) -> None:
    added = {setting: {"https://a.invalid/b": "https://mirror.invalid/b"}}
    host_file = job.host_file.changed(**added)
    before, after = replace(job).job, replace(job, host_file=host_file).job
    source = job.recipe.source
    differing = fetch.inputs(before, source).items() ^ (fetch.inputs(after, source).items())
    assert {name for name, _ in differing} == {"the host file's [mirrors] and [downloads]"}


@pytest.mark.medium
def test_a_build_that_only_configures_waits_for_no_archive_and_a_whole_one_fetches_them_later(
    job: RecipeJob, quick_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ExternalRules, "fetch", lambda *_: pytest.fail("asked for archives"))
    configuring = replace(job, until="configure")
    made = run(configuring, quick_python)
    assert made.python.is_file()
    assert fetch.damage(configuring, made) is None
    assert fetch.damage(job, made) == "only what ./configure needs was fetched"


@pytest.mark.medium
@pytest.mark.parametrize("until", ["publish", "configure"])
def test_which_file_bazel_begins_with_is_handed_on_where_it_is_rewritten(
    job: RecipeJob, tmp_path: Path, quick_python: Path, until: str
) -> None:
    rule = f'http_archive(name = "r", url = "https://a.example/r.zip", sha256 = "{"1" * 64}")\n'
    texts = {"MODULE.bazel": rule, "MODULE.bazel.lock": "{}"}
    bazelrc = "common --enable_bzlmod --noenable_workspace\n"
    pinned = commit(tmp_path / "upstream", {**texts, ".bazelrc": bazelrc})
    dropped = make_file(tmp_path / "drop/r.zip", b"other")
    other = SubstituteTable(
        reason="why",
        replaces="1" * 64,
        sha256=files.sha256(dropped),
        urls=("https://example.org/r.zip",),
    )
    recipe = job.recipe
    source = recipe.source.changed(url=str(tmp_path / "upstream"), commit=pinned)
    settings = job.host_file.changed(drop=tmp_path / "drop")
    changed = recipe.changed(source=source, fetch=FetchTable(substitutes={"r": other}))
    job = replace(job, recipe=changed, host_file=settings, until=until, offline=False)
    made = run(job, quick_python)
    assert made.starts == ("MODULE.bazel",)
