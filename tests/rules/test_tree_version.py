import subprocess
from pathlib import Path

import pytest
from tests.failing import fails

from tfwright.documents.recipe import Recipe, SourceTable
from tfwright.documents.release import Release
from tfwright.errors import RecipeError
from tfwright.rules import tree_files


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return an empty repository."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def commit(repository: Path, version: str) -> str:
    """Commit a tree of a version, and return the commit."""
    setup = repository / "tensorflow/tools/pip_package/setup.py"
    setup.parent.mkdir(parents=True, exist_ok=True)
    setup.write_text(f"_VERSION = '{version}'\n", "utf-8")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (("add", "."), ("commit", "-q", "-m", version)):
        subprocess.run(["git", *identity, *command], cwd=repository, check=True)
    shown = ["git", "rev-parse", "HEAD"]
    return subprocess.run(
        shown, cwd=repository, check=True, capture_output=True, text=True
    ).stdout.strip()


def source(recipe: Recipe, **keys: str) -> SourceTable:
    """Return the [source] of a recipe with these keys."""
    table = {"url": recipe.source.url, "commit": "0" * 40, "branch": "master"}
    return SourceTable.model_validate(table | keys)


@pytest.mark.parametrize(
    ("tree", "keys"),
    [
        ("1.8.0", {"branch": "r1.8"}),
        ("1.8.0-rc1", {"branch": "r1.8"}),
        ("1.8.0-rc1", {"branch": "r1.8", "version": "1.8.0-rc1"}),
        ("2.4.4", {"branch": "r2.4"}),
        ("2.4.4", {"branch": "r2.4", "version": "2.4.4"}),
        ("1.15.5", {"branch": "r1.15.5+nv22.12"}),
        ("1.15.5+nv22.12", {"release": "1.15.5+nv22.12"}),
    ],
)
def test_a_tree_of_the_stated_version_passes(
    repository: Path, recipe: Recipe, tree: str, keys: dict[str, str]
) -> None:
    pinned = commit(repository, tree)
    tree_files.insist_on_release(repository / ".git", pinned, source(recipe, **keys))


@pytest.mark.parametrize(
    ("tree", "keys", "says"),
    [
        ("1.9.0", {"branch": "r1.12"}, "TensorFlow 1.9.0, the recipe says 1.12"),
        ("2.4.0", {"branch": "r2.4", "version": "2.4.4"}, "2.4.0, the recipe says 2.4.4"),
        ("1.12.0-rc0", {"branch": "v1.12.0"}, "1.12.0-rc0, the recipe says 1.12.0"),
        ("1.12.0", {"branch": "v1.12.0-rc0"}, "1.12.0, the recipe says 1.12.0-rc0"),
        ("1.15.4", {"branch": "r1.15.5+nv22.12"}, "1.15.4, the recipe says 1.15.5"),
    ],
)
def test_a_tree_of_another_version_is_refused(
    repository: Path, recipe: Recipe, tree: str, keys: dict[str, str], says: str
) -> None:
    pinned = commit(repository, tree)
    with fails(RecipeError) as caught:
        tree_files.insist_on_release(repository / ".git", pinned, source(recipe, **keys))
    assert says in caught.value.what
    assert "source.version" in caught.value.remedy


@pytest.mark.parametrize("version", ["12345678901.1", "1.12345678901", "\u0661.\u0668"])
def test_a_version_that_none_can_be_says_nothing(
    repository: Path, recipe: Recipe, version: str
) -> None:
    pinned = commit(repository, version)
    tree_files.insist_on_release(repository / ".git", pinned, source(recipe, branch="r1.8"))


def test_the_release_of_a_tree_is_read_off_the_file_that_states_it() -> None:
    setup = "tensorflow/tools/pip_package/setup.py"
    bzl = "tensorflow/tf_version.bzl"
    assert set(tree_files.RELEASES) == {setup, bzl}
    old = {setup: "_VERSION = '1.8.0'\n"}
    new = {bzl: 'TF_VERSION = "2.20.0"\n', setup: "_VERSION = f()\n"}
    assert tree_files.release_of(old) == Release(1, 8)
    assert tree_files.release_of(new) == Release(2, 20)
    assert tree_files.release_of({"README": "1.8.0"}) is None


def test_another_project_states_its_version_as_it_likes(repository: Path, recipe: Recipe) -> None:
    pinned = commit(repository, "9.9.9")
    tree_files.insist_on_release(repository / ".git", pinned, source(recipe, interface="own"))
