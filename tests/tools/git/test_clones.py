"""Clones: a commit with its history, brought, carried, and what Bazel's git makes of it."""

from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file
from tests.upstream import commit, run_git

from tfwright.errors import SupplyError, ToolError
from tfwright.tools.git import clones, mirror
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.mirror import Origin

REMOTE = 'https://example.invalid/a "b".git'


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Return a repository with two commits on a branch, and one on another."""
    path = tmp_path / "upstream"
    for text in ("first", "second"):
        commit(path, {"BUILD": text})
    run_git("checkout", "--quiet", "-B", "other", cwd=path)
    commit(path, {"BUILD": "third"})
    return path


@pytest.fixture
def wanted(upstream: Path) -> Clone:
    return Clone(REMOTE, run_git("rev-parse", "main", cwd=upstream))


def cloned(wanted: Clone, repository: Path, folder: Path) -> str:
    """Do what Bazel's git_repository does; return what was checked out."""
    kept = clones.clone_configuration({wanted.remote: repository})
    settings = str(make_file(folder / "home/.gitconfig", kept))
    run_git("init", "--quiet", "made", cwd=folder)
    for arguments in (
        ("remote", "add", "origin", wanted.remote),
        ("fetch", "--quiet", "--all"),
        ("reset", "--quiet", "--hard", wanted.commit),
    ):
        run_git(*arguments, cwd=folder / "made", GIT_CONFIG_GLOBAL=settings)
    return (folder / "made/BUILD").read_text("utf-8")


@pytest.mark.medium
def test_bazels_git_finds_a_commit_on_this_host_that_it_looks_for_elsewhere(
    upstream: Path, wanted: Clone, tmp_path: Path
) -> None:
    kept = clones.fetch(wanted, tmp_path / "git", Origin.of(str(upstream)), offline=False)
    assert cloned(wanted, kept, tmp_path / "bazel") == "second"
    # With its history, and no other branch.
    assert run_git("rev-list", "--all", "--count", cwd=kept) == "2"


@pytest.mark.medium
def test_what_is_here_is_asked_of_nobody(upstream: Path, wanted: Clone, tmp_path: Path) -> None:
    with fails(SupplyError, "invoke fetch"):
        clones.fetch(wanted, tmp_path / "git", Origin.of(str(upstream)), offline=True)
    kept = clones.fetch(wanted, tmp_path / "git", Origin.of(str(upstream)), offline=False)
    gone = Origin.of("https://example.invalid/gone.git")
    for offline in (False, True):
        assert clones.fetch(wanted, tmp_path / "git", gone, offline=offline) == kept


@pytest.fixture
def there(upstream: Path, wanted: Clone, tmp_path: Path) -> Path:
    """Bring the commit into a store, and write it with its history into a file to be carried."""
    brought = clones.fetch(wanted, tmp_path / "there", Origin.of(str(upstream)), offline=False)
    mirror.write_bundle(brought, wanted.commit, tmp_path / "file", history=True)
    return brought


@pytest.mark.medium
@pytest.mark.usefixtures("there")
def test_a_carried_commit_serves_as_one_that_was_fetched(wanted: Clone, tmp_path: Path) -> None:
    clones.read_bundle(wanted, tmp_path / "file", tmp_path / "here")
    here = clones.fetch(wanted, tmp_path / "here", Origin.of(REMOTE.replace(" ", "")), offline=True)
    assert cloned(wanted, here, tmp_path / "bazel") == "second"


@pytest.mark.medium
def test_a_carried_file_without_the_commit_or_its_history_is_refused(
    there: Path, wanted: Clone, tmp_path: Path
) -> None:
    with fails(ToolError):
        clones.read_bundle(Clone(REMOTE, "1" * 40), tmp_path / "file", tmp_path / "here")
    mirror.write_bundle(there, wanted.commit, tmp_path / "shallow")
    with fails(ToolError):
        clones.read_bundle(wanted, tmp_path / "shallow", tmp_path / "elsewhere")
