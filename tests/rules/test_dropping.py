from pathlib import Path
from typing import Any

import pytest
from tests.upstream import commit, run_git

from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import Recipe
from tfwright.rules import dropping
from tfwright.rules.dropping import DropFacts
from tfwright.rules.model import Repository, Rules
from tfwright.tools.git import patching


def of(release: str = "1.8", python: str = "3.6", system: str = "Linux", **answers: bool) -> Recipe:
    recipe = recipes.read("linux-r1.8-cpu")
    source = recipe.source.changed(release=type(recipe.source.release).parse(release))
    host = recipe.host.changed(python=python, system=system)
    given = {**recipe.configure.answers, **answers}
    configure = recipe.configure.changed(answers=given)
    return recipe.changed(source=source, host=host, configure=configure)


def answer(drop_when: str, recipe: Recipe, **facts: object) -> str:
    return dropping.judge(drop_when, DropFacts.of(recipe, **facts)).answer  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "drop_when",
    [
        "release >= 1.9",
        "release >= 1.9.0",
        "the release is 1.9 or later.",
        "the release is 1.9 or later, where NCCL can be left out (--config=nonccl).",
        "the release is 1.9 or later, or the wheel is for Python 2.",
        "the wheel is for Python 2, or the release is 1.9 or later",
        "some day; release >= 1.9",
    ],
)
def test_a_release_makes_a_patch_due_in_a_short_form_and_in_a_sentence(drop_when: str) -> None:
    assert answer(drop_when, of("1.12")) == "due"
    assert answer(drop_when, of("1.9")) == "due"
    assert answer(drop_when, of("1.8")) != "due"


@pytest.mark.parametrize(
    ("drop_when", "recipe", "said"),
    [
        # A patch level counts where it is named.
        ("release >= 2.4.1", {"release": "2.4"}, "not due"),
        ("release >= 2.4", {"release": "2.4"}, "due"),
        ("answer TF_NEED_S3", {}, "not due"),
        ("answer TF_NEED_S3", {"TF_NEED_S3": True}, "due"),
        ("the recipe sets TF_NEED_S3.", {}, "not due"),
        ("the recipe sets TF_NEED_S3.", {"TF_NEED_S3": True}, "due"),
        ("python >= 3.7", {"python": "3.7"}, "due"),
        ("python >= 3.7", {"python": "3.6"}, "not due"),
        ("python >= 3.7", {"python": "any"}, "unknown"),
        ("the wheel is for macOS.", {"system": "Darwin"}, "due"),
        ("the wheel is for macOS.", {"system": "Linux"}, "not due"),
        # A sentence that only people understand is left to them.
        ("the wrapper exits with nvcc's own status.", {}, "unknown"),
        ("the build host has glibc 2.29 or older", {}, "unknown"),
    ],
)
def test_what_a_recipe_says_makes_a_patch_due(
    drop_when: str, recipe: dict[str, Any], said: str
) -> None:
    assert answer(drop_when, of(**recipe)) == said


def test_one_condition_that_holds_is_enough_and_is_named() -> None:
    verdict = dropping.judge(
        "the release is 2.1 or later, or the wheel is for Python 2.",
        DropFacts.of(of("1.15", python="2.7")),
    )
    assert (verdict.answer, verdict.condition) == ("due", "the wheel is for Python 2")


@pytest.mark.parametrize("name", ["zlib", "nasm", "ZLIB"])
def test_a_substitute_that_is_gone_makes_its_patch_due(name: str) -> None:
    sentence = f"the recipe builds from the pinned archive of {name} again."
    assert answer(sentence, of()) == "not due"
    without = of().changed(fetch=type(of().fetch)())
    assert answer(sentence, without) == "due"
    assert answer(f"no substitute {name}", without) == "due"


def test_the_version_of_a_pinned_archive_makes_a_patch_due() -> None:
    def rules(folder: str) -> Rules:
        rule = Repository("grpc", "tf_http_archive", "workspace.bzl", 1, strip_prefix=folder)
        return Rules((rule,), ())

    for drop_when in ("pins grpc >= 1.22", "the release pins gRPC 1.22 or later"):
        assert answer(drop_when, of(), rules=rules("grpc-1.13.0")) == "not due"
        assert answer(drop_when, of(), rules=rules("grpc-1.22.0")) == "due"
        # A commit says nothing about versions.
        assert answer(drop_when, of(), rules=rules("grpc-" + "b" * 40)) == "unknown"
        assert answer(drop_when, of()) == "unknown"


def pinning(commit: str) -> Recipe:
    """Return a recipe that pins a commit."""
    recipe = of()
    return recipe.changed(source=recipe.source.changed(commit=commit))


def test_an_upstream_commit_in_the_history_makes_a_patch_due(tmp_path: Path) -> None:
    commits = [commit(tmp_path, message=str(number)) for number in range(3)]
    recipe, repository = pinning(commits[1]), tmp_path / ".git"
    assert answer(f"upstream {commits[0][:10]}", recipe, repository=repository) == "due"
    assert answer(f"upstream {commits[2]}", recipe, repository=repository) == "not due"
    assert answer(f"upstream {'a' * 12}", recipe, repository=repository) == "unknown"
    assert answer(f"upstream {commits[0]}", recipe) == "unknown"


def test_where_history_is_cut_off_nothing_is_claimed(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    first, _, newest = (commit(whole, message=str(number)) for number in range(3))
    run_git("clone", "--quiet", "--bare", "--depth=1", whole.as_uri(), cut, cwd=tmp_path)
    assert answer(f"upstream {first}", pinning(newest), repository=cut) == "unknown"


@pytest.mark.parametrize(
    "drop_when",
    ["release => 1.9", "release >= one", "release>1.9.x", "upstream 12", "pins grpc", "glibc = 2"],
)
def test_a_short_form_that_cannot_be_read_is_found(drop_when: str) -> None:
    assert dropping.misspelt_condition(drop_when)


def test_no_header_of_ours_is_misspelt() -> None:
    for patch in recipes.PATCHES.glob("*/*.patch"):
        assert not dropping.misspelt_condition(patching.read_header(patch).drop_when)


@pytest.mark.parametrize(
    "drop_when",
    [
        "no substitute zlib",
        "answer TF_NEED_CUDA",
        "python >= 3.7",
        "the wheel is for Python 2",
        "the wheel is for macOS",
        "pins grpc >= 1.13",
        "glibc >= 2.30",
        f"upstream {'a' * 40}",
    ],
)
def test_without_the_whole_recipe_nothing_is_claimed(drop_when: str) -> None:
    facts = DropFacts(of().source)
    assert dropping.judge(drop_when, facts).answer == "unknown"


def test_a_release_says_nothing_of_a_tree_that_is_not_tensorflows() -> None:
    source = of().source.changed(interface="own")
    verdict = dropping.judge("release >= 1.0", DropFacts(source))
    assert verdict.answer == "unknown"


def test_a_condition_that_only_the_history_decides_is_named(tmp_path: Path) -> None:
    upstream = f"upstream {'a' * 12}"
    facts = DropFacts.of(of())
    assert dropping.unknown_upstream(f"release >= 9; {upstream}", facts) == upstream
    assert dropping.unknown_upstream("release >= 9", facts) == ""
    pinned = commit(tmp_path, {"a": ""})
    known = DropFacts.of(pinning(pinned), repository=tmp_path / ".git")
    assert dropping.unknown_upstream(f"upstream {pinned}", known) == ""
