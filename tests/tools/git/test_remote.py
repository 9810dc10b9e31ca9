import shlex
import subprocess
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import find_text
from tests.upstream import commit, run_git

from tfwright.documents.release import ExactRelease
from tfwright.errors import SupplyError
from tfwright.tools.git.remote import Remote
from tfwright.tools.git.repository import GitRepository


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Return a repository with two files, which gives single files as servers do."""
    repository = tmp_path / "upstream"
    commit(repository, {".bazelversion": "3.7.2\n", "large": "x" * 1000})
    run_git("branch", "--move", "r2.6", cwd=repository)
    run_git("tag", "v2.6.0-rc1", cwd=repository)
    for setting in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        run_git("config", setting, "true", cwd=repository)
    return repository


@pytest.mark.medium
def test_a_few_files_of_a_commit_are_read_without_the_others(
    upstream: Path, tmp_path: Path
) -> None:
    address = f"file://{upstream}"
    commit = Remote(tmp_path, address).commit_of("v2.6.0-rc1")
    paths = (".bazelversion", "configure.py")
    # A repository on this host is read where it is; a server is asked for these files.
    assert Remote(tmp_path, str(upstream)).texts(commit, paths) == {".bazelversion": "3.7.2\n"}
    scratch = GitRepository(tmp_path / "scratch.git").make()
    Remote(tmp_path, address)._fetch_texts(scratch, commit, paths)
    assert scratch.text(f"{commit}:.bazelversion") == "3.7.2\n"
    assert not scratch.kind(run_git("rev-parse", f"{commit}:large", cwd=upstream))


@pytest.mark.parametrize("address", ["https://nowhere.invalid/tensorflow.git", "/gone/repo"])
def test_a_server_or_a_mirror_that_gives_nothing_gives_no_texts(
    address: str, tmp_path: Path
) -> None:
    assert Remote(tmp_path, address).texts("0" * 40, (".bazelversion",)) == {}
    assert not (tmp_path / "looking.git").exists()


@pytest.mark.medium
def test_a_name_that_a_repository_lacks_is_refused(upstream: Path, tmp_path: Path) -> None:
    with fails(SupplyError, "v2.6.0"):
        Remote(tmp_path, f"file://{upstream}").commit_of("v2.6.0")


@pytest.mark.medium
# Of a release that it lacks as a whole, the nearest ones.
@pytest.mark.parametrize("name", ["r2.6.0", "v2.6", "v2.9.1"])
def test_the_names_that_a_repository_has_near_a_version_are_listed(
    upstream: Path, tmp_path: Path, name: str
) -> None:
    with fails(SupplyError) as caught:
        Remote(tmp_path, str(upstream)).commit_of(name)
    assert caught.value.remedy.startswith("Name one that it has, such as v2.6.0-rc1, r2.6. 'git")


@pytest.mark.medium
def test_where_no_name_is_near_the_command_that_lists_all_is_given(
    upstream: Path, tmp_path: Path
) -> None:
    with fails(SupplyError, "main") as caught:
        Remote(tmp_path, str(upstream)).commit_of("main")
    # What is told to be typed is followed: the repository's own names are listed.
    command = find_text(r"'(git ls-remote [^']+)'", caught.value.remedy)
    listed = subprocess.run(shlex.split(command[1]), capture_output=True, text=True, check=True)
    assert "refs/heads/r2.6" in listed.stdout
    assert "VERSION@COMMIT" in caught.value.remedy


@pytest.mark.medium
@pytest.mark.parametrize("tag", ["v1.0.0-rc2", "v1.0.0rc2", "1.0.0-rc2"])
def test_a_release_candidate_is_found_however_its_tag_is_spelled(
    upstream: Path, tmp_path: Path, tag: str
) -> None:
    subprocess.run(["git", "tag", tag], cwd=upstream, check=True)
    remote = Remote(tmp_path, f"file://{upstream}")
    name, commit = remote.release_of(ExactRelease.parse("1.0.0rc2"))
    assert (name, len(commit)) == (tag, 40)
    with fails(SupplyError, "v1.0.0-rc1"):
        remote.release_of(ExactRelease.parse("1.0.0-rc1"))


@pytest.fixture
def history(tmp_path: Path) -> list[str]:
    """Make a repository with five commits, and return them, oldest first."""
    place = tmp_path / "history"
    return [commit(place, {"op.cc": f"{number}\n"}, f"Change {number}") for number in range(5)]


@pytest.mark.medium
def test_the_commits_since_a_build_are_named_newest_first(
    history: list[str], tmp_path: Path
) -> None:
    remote = Remote(tmp_path, f"file://{tmp_path / 'history'}")
    listed = remote.commits(history[1], history[4])
    assert listed == [(history[n], "a", f"Change {n}") for n in (4, 3, 2)]
    # What was brought before serves again; nothing lies between a commit and itself.
    assert remote.commits(history[4], history[4]) == []


@pytest.mark.medium
def test_after_a_rewritten_branch_no_commits_are_named(history: list[str], tmp_path: Path) -> None:
    place = tmp_path / "history"
    run_git("checkout", "--quiet", "--orphan", "again", cwd=place)
    rewritten = commit(place, message="Begin again")
    address = f"file://{place}"
    assert Remote(tmp_path, address).commits(history[4], rewritten) == []


@pytest.mark.medium
def test_the_newest_tag_is_that_of_the_highest_version(history: list[str], tmp_path: Path) -> None:
    place = tmp_path / "history"
    for number, tag in enumerate(("v1.9.0", "v1.10.0-rc1", "nightly", "v2.0.0")):
        run_git("tag", tag, history[number], cwd=place)
    # An annotated tag is an object of its own, and leads to the commit.
    run_git("tag", "-m", "Release", "v1.10.0", history[4], cwd=place)
    remote = Remote(tmp_path, f"file://{place}")
    assert remote.newest_tag("v1.*") == ("v1.10.0", history[4])
    assert remote.newest_tag("*") == ("v2.0.0", history[3])
    with fails(SupplyError, "night*"):
        remote.newest_tag("night*")


@pytest.mark.medium
def test_of_many_similar_names_some_are_listed(tmp_path: Path) -> None:
    place = tmp_path / "many"
    commit(place, {"a": ""})
    for patch in range(8):
        run_git("tag", f"v1.8.{patch}", cwd=place)
    with fails(SupplyError) as caught:
        Remote(tmp_path, f"file://{place}").commit_of("r1.8")
    assert " such as v1.8.0, v1.8.1, v1.8.2. 'git ls-remote" in caught.value.remedy


@pytest.mark.medium
def test_a_mirror_that_is_not_there_is_no_matter_of_the_network(tmp_path: Path) -> None:
    with pytest.raises(SupplyError) as caught:
        Remote(tmp_path, str(tmp_path / "gone")).commit_of("r2.6")
    assert caught.value.remedy.startswith("Correct the path, or name a mirror")
