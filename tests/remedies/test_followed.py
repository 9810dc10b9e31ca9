"""Remedies that are followed: what the message says is done to the letter, and the fault is gone."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from tests.making import find_text, make_file, make_folder
from tests.remedies.following import failing
from tests.results import facts_of
from tests.upstream import commit

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.toml import load
from tfwright.errors import RecipeError, SupplyError
from tfwright.pipeline import engine
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import HostFacts, Inputs
from tfwright.pipeline.stage import Stage
from tfwright.pipeline.stages import fetch
from tfwright.progress import SILENCE
from tfwright.tools import files
from tfwright.tools.git import demo, mirror
from tfwright.tools.git.mirror import Origin, Pin

pytestmark = pytest.mark.medium

# The recipe


def test_the_key_that_is_suggested_is_taken(recipe_file: Path) -> None:
    text = recipe_file.read_text("utf-8").replace("[bazel]", "[bazl]")
    recipe_file.write_text(text.replace("branch =", "brunch ="), "utf-8")
    for _ in range(5):
        try:
            recipes.read(str(recipe_file))
        except RecipeError as fault:
            text = recipe_file.read_text("utf-8")
            recipe_file.write_text(corrected(text, fault), "utf-8")
    assert recipes.read(str(recipe_file)).source.branch == "r1.8"


def corrected(text: str, fault: RecipeError) -> str:
    """Do to a recipe what an error about its keys says."""
    if near := re.search(r"unknown key (\S+?); did you mean '(\w+)'", fault.what):
        wrong = near[1].rpartition(".")[2]
        return text.replace(f"{wrong} =", f"{near[2]} =").replace(f"[{wrong}]", f"[{near[2]}]")
    assert fault.remedy.startswith("Add 'release'"), fault.remedy
    return text.replace("branch =", 'release = "1.8"\nbranch =')


def test_the_commit_that_is_named_is_the_one_to_pin(tmp_path: Path) -> None:
    def bring(pinned: str) -> Path:
        pin = Pin(demo.URL, "main", pinned)
        return mirror.fetch(pin, tmp_path, Origin.of(demo.URL), SILENCE, offline=True)

    fault = failing(lambda: bring("0123456789" * 4), RecipeError)
    written = tomllib.loads(fault.remedy.removeprefix("Write ").partition(" into")[0])
    assert bring(written["commit"]).is_dir()


@pytest.mark.parametrize("typed", ["compil", "fetsch", "sauce"])
def test_the_stage_that_is_suggested_or_listed_exists(typed: str) -> None:
    fault = failing(lambda: engine.stage_named(typed), RecipeError)
    near = re.search(r"did you mean '(\w+)'", fault.what)
    names = [near[1]] if near else fault.remedy.removesuffix(".").partition(": ")[2].split(", ")
    for name in names:
        assert engine.stage_named(name).name == name


def test_the_option_that_is_to_be_added_makes_the_command_valid() -> None:
    fault = failing(lambda: engine.check_stages("source", "compile"), RecipeError)
    until = find_text(r"--until (\w+)", fault.remedy)
    engine.check_stages(until[1], "compile")


# The host


def test_a_host_file_with_a_wrong_key_takes_one_of_those_that_are_listed(tmp_path: Path) -> None:
    path = make_file(tmp_path / "host.toml", 'drop_folder = "/x"\n')
    fault = failing(lambda: load(path, HostFile), RecipeError)
    names = fault.remedy.removeprefix("Use one of: ").removesuffix(".").split(", ")
    assert "drop" in names
    path.write_text('drop = "/x"\n', "utf-8")
    assert load(path, HostFile).drop == Path("/x")


# What comes from outside


WORKSPACE = """\
load("@dep//:defs.bzl", "more")
http_archive(name = "dep", urls = ["http://127.0.0.1:9/dep.zip"], sha256 = "{sha256}")
more()
"""


@pytest.fixture
def job(recipe: Recipe, tmp_path: Path) -> RecipeJob:
    """Return a job whose WORKSPACE loads a file of an archive that no server has."""
    sha256 = files.sha256(dep(tmp_path))
    pinned = commit(tmp_path / "upstream", {"WORKSPACE": WORKSPACE.format(sha256=sha256)})
    table = recipe.source.changed(commit=pinned)
    foreign = recipe.host.changed(system="Darwin")
    mirrors = {recipe.source.url: str(tmp_path / "upstream")}
    host_file = HostFile(build_out=tmp_path / "build_out", mirrors=mirrors)
    changed = recipe.changed(source=table, host=foreign)
    return RecipeJob(recipe=changed, host_file=host_file)


def dep(tmp_path: Path) -> Path:
    return make_file(tmp_path / "dep.zip", b"PK\x05\x06" + bytes(18))


def fetched(job: RecipeJob) -> Inputs:
    made = Stage(fetch).run(job, {HostFacts: facts_of()})
    assert isinstance(made, Inputs)
    return made


@pytest.mark.parametrize("already", [True, False], ids=["a drop folder", "no drop folder"])
def test_a_file_in_the_drop_folder_takes_the_place_of_its_servers(
    job: RecipeJob, tmp_path: Path, *, already: bool
) -> None:
    drop = make_folder(tmp_path / "drop")
    if already:
        job = replace(job, host_file=job.host_file.changed(drop=drop))
    fault = failing(lambda: fetched(job), SupplyError)
    named = re.search(r"into (/\S+?);", fault.remedy)
    if named:
        assert named[1] == str(drop)
    else:
        find_text(r'drop = "/path/to/folder"', fault.remedy)
        job = replace(job, host_file=job.host_file.changed(drop=drop))
    dep(tmp_path).rename(drop / "any name")
    assert [archive.size for archive in fetched(job).archives] == [22]
