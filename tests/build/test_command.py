"""Commands that build, as a user types them."""

import json
from pathlib import Path

import pytest
from tests.making import Read
from tests.remedies.following import CommandLine, write_recipe
from tests.upstream import commit


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """Return a recipe of a small tree whose first stages run on this host."""
    pinned = commit(tmp_path / "upstream", {"WORKSPACE": ""})
    return write_recipe(tmp_path / "small.toml", tmp_path / "upstream", pinned)


@pytest.mark.medium
def test_a_recipe_that_fails_keeps_no_other_one_from_being_built(
    shell: CommandLine, recipe: Path, out: Read
) -> None:
    gone = write_recipe(recipe.with_name("gone.toml"), recipe, "0" * 40)
    named = f"invoke build --recipe {gone} --recipe {recipe}"
    assert shell.status(f"{named} --until source --json") == 4
    rows = json.loads(out())
    assert [(row["recipe"], row["state"], row["status"]) for row in rows] == [
        (str(gone), "failed", 4),
        (str(recipe), "built", 0),
    ]
    # The one that failed has said why, and goes on by itself.
    assert shell.resume == f"invoke build --recipe {gone} --until source"


@pytest.mark.medium
def test_several_recipes_are_built_here_where_the_host_file_names_no_machine(
    shell: CommandLine, recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write_recipe(
        recipe.with_name("other.toml"),
        recipe.parent / "upstream",
        commit(recipe.parent / "upstream", {"BUILD": ""}),
    )
    named = f"invoke build --recipe {recipe} --recipe {other}"
    shell.succeeds(f"{named} --until source")
    said = capsys.readouterr()
    assert "2 built" in said.err
    assert f"{other}: built on here" in said.err


def test_the_bazelrc_of_a_recipe_is_printed_alone(shell: CommandLine, out: Read) -> None:
    shell.succeeds("invoke plan --recipe demo --bazelrc")
    for line in out().splitlines():
        assert line.startswith("build")


def test_caches_go_only_when_they_are_named(
    shell: CommandLine, recipe_file: Path, tmp_path: Path
) -> None:
    tree, vault = (tmp_path / "build_out" / name for name in ("small/tree", "vault/bazel"))
    for folder in (tree, vault):
        folder.mkdir(parents=True)
    shell.succeeds(f"invoke clean --recipe {recipe_file}")
    assert (tree.exists(), vault.exists()) == (False, True)
    shell.succeeds(f"invoke clean --recipe {recipe_file} --caches")
    assert not vault.exists()
