"""What plan says of the hours that a change will cost again."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tfwright.configure.expected import interview, render
from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import Recipe
from tfwright.pipeline import foresight
from tfwright.pipeline.job import BuildRequest
from tfwright.pipeline.results import Configured, HostFacts, Tree
from tfwright.pipeline.stage import Artefact
from tfwright.tools import files
from tfwright.tools.python import venv

HOST = HostFacts(
    system="Linux",
    machine="x86_64",
    glibc="2.36",
    interpreter=Path("/usr/bin/python3.11"),
    python="3.11.7",
    compiler="",
)


@pytest.fixture
def demo(job: BuildRequest) -> BuildRequest:
    """Return a job of the demo for Linux, whatever runs the tests."""
    recipe = recipes.read("demo")
    host = recipe.host.model_copy(update={"system": "Linux"})
    return replace(job, recipe=recipe.model_copy(update={"host": host}))


@pytest.fixture
def configured(demo: BuildRequest) -> Configured:
    """Return what ./configure left of the recipe as it is."""
    home = venv.place(
        HOST.interpreter, HOST.python, demo.recipe.host.requirements, demo.places.stores
    )
    asked = interview(demo.recipe, demo.host_file)
    text = render(asked, demo.recipe.configure) or ""
    text = text.replace("@PYTHON_BIN_PATH@", f"{home}/bin/python")
    packages = f"{home}/lib/python3.11/site-packages"
    path = demo.places.own / ".tf_configure.bazelrc"
    files.write(path, text.replace("@PYTHON_LIB_PATH@", packages))
    return Configured(bazelrc=Artefact.of(path), asked=(), never_asked=())


def said(
    job: BuildRequest,
    configured: Configured,
    facts: HostFacts = HOST,
    **tables: Mapping[str, object],
) -> str:
    """Return what is foreseen after a change of the recipe's tables."""
    changed = {
        name: getattr(job.recipe, name).model_copy(update=dict(update))
        for name, update in tables.items()
    }
    recipe: Recipe = job.recipe.model_copy(update=changed)
    tree = Tree(
        path=job.places.tree, commit="0" * 40, epoch=1, release=recipe.source.release, content=""
    )
    return foresight.compiled_again(job.job, recipe, facts, tree, configured)


def test_nothing_is_foreseen_of_a_recipe_that_did_not_change(
    demo: BuildRequest, configured: Configured
) -> None:
    assert said(demo, configured) == ""


def test_other_packages_for_the_build_move_its_python_and_so_every_action(
    demo: BuildRequest, configured: Configured
) -> None:
    requirements = (*demo.recipe.host.requirements, "six==1.16.0")
    assert said(demo, configured, host={"requirements": requirements}) == (
        "every action runs again, since PYTHON_BIN_PATH and PYTHON_LIB_PATH change "
        "with the packages or the version of [host] Python"
    )


def test_checksums_of_the_packages_do_not_move_it(
    demo: BuildRequest, configured: Configured
) -> None:
    first, *rest = demo.recipe.host.requirements
    requirements = (f"{first} --hash=sha256:{'0' * 64}", *rest)
    assert said(demo, configured, host={"requirements": requirements}) == ""


def test_another_patch_level_of_the_hosts_python_moves_it_too(
    demo: BuildRequest, configured: Configured
) -> None:
    newer = HOST.model_copy(update={"python": "3.11.8"})
    assert "PYTHON_BIN_PATH" in said(demo, configured, newer)


def test_an_answer_that_changes_a_flag_is_foreseen_with_the_flag(
    demo: BuildRequest, configured: Configured
) -> None:
    answers = {**demo.recipe.configure.answers, "CC_OPT_FLAGS": "-O3"}
    text = said(demo, configured, configure={"answers": answers})
    assert text.startswith("flags of Bazel change: ")
    assert "--copt=-O3" in text


def test_nothing_is_said_of_a_file_that_somebody_has_edited_or_removed(
    demo: BuildRequest, configured: Configured
) -> None:
    changed = {"requirements": ()}
    configured.bazelrc.path.write_text("build --copt=-O0\n", "utf-8")
    assert said(demo, configured, host=changed) == ""
    configured.bazelrc.path.unlink()
    assert said(demo, configured, host=changed) == ""


def test_answers_that_configure_would_refuse_are_left_to_it(
    demo: BuildRequest, configured: Configured
) -> None:
    answers = {**demo.recipe.configure.answers, "TF_NEED_CUDA": "perhaps"}
    assert said(demo, configured, configure={"answers": answers}) == ""
