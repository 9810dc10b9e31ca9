import subprocess
from pathlib import Path

import pytest

from tfwright.documents.release import ExactRelease
from tfwright.errors import SupplyError
from tfwright.tools import git
from tfwright.tools.git import remote


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Return a repository with two files, which gives single files as servers do."""
    repository = tmp_path / "upstream"
    repository.mkdir()
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    (repository / ".bazelversion").write_text("3.7.2\n", "utf-8")
    (repository / "large").write_text("x" * 1000, "utf-8")
    for command in (
        ("init", "-q", "-b", "r2.6"),
        ("add", "."),
        ("commit", "-q", "-m", "Begin"),
        ("tag", "v2.6.0-rc1"),
        ("config", "uploadpack.allowFilter", "true"),
        ("config", "uploadpack.allowAnySHA1InWant", "true"),
    ):
        subprocess.run(["git", *identity, *command], cwd=repository, check=True)
    return repository


@pytest.mark.medium
def test_a_few_files_of_a_commit_are_read_without_the_others(
    upstream: Path, tmp_path: Path
) -> None:
    address = f"file://{upstream}"
    commit = remote.commit_of(tmp_path, address, "v2.6.0-rc1")
    paths = (".bazelversion", "configure.py")
    # A repository on this host is read where it is; a server is asked for these files.
    assert remote.texts(tmp_path, str(upstream), commit, paths) == {
        ".bazelversion": "3.7.2\n"
    }
    scratch = tmp_path / "scratch.git"
    git.run(git.command(tmp_path, "init", "--quiet", "--bare", str(scratch)))
    remote._bring_texts(scratch, address, commit, paths)
    assert git.text(scratch, f"{commit}:.bazelversion") == "3.7.2\n"
    large = git.run(
        git.command(upstream / ".git", "rev-parse", f"{commit}:large")
    )
    assert git.kind(scratch, large.strip()) is None


def test_a_server_that_gives_nothing_gives_no_texts(tmp_path: Path) -> None:
    nowhere = "https://nowhere.invalid/tensorflow.git"
    assert remote.texts(tmp_path, nowhere, "0" * 40, (".bazelversion",)) == {}
    assert not (tmp_path / "looking.git").exists()


@pytest.mark.medium
def test_a_name_that_a_repository_lacks_is_refused(
    upstream: Path, tmp_path: Path
) -> None:
    with pytest.raises(SupplyError, match=r"has no tag and no branch v2\.6\.0$"):
        remote.commit_of(tmp_path, f"file://{upstream}", "v2.6.0")


@pytest.mark.medium
def test_the_names_that_a_repository_has_of_the_same_version_are_listed(
    upstream: Path, tmp_path: Path
) -> None:
    with pytest.raises(SupplyError) as caught:
        remote.commit_of(tmp_path, str(upstream), "r2.6.0")
    assert caught.value.remedy == "Name one that it has: v2.6.0-rc1."
    with pytest.raises(SupplyError) as caught:
        remote.commit_of(tmp_path, str(upstream), "v2.6")
    assert caught.value.remedy == "Name one that it has: r2.6, v2.6.0-rc1."
    with pytest.raises(SupplyError, match="no tag and no branch") as caught:
        remote.commit_of(tmp_path, str(upstream), "main")
    assert "such as v1.12.0" in caught.value.remedy


@pytest.mark.medium
@pytest.mark.parametrize("tag", ["v1.0.0-rc2", "v1.0.0rc2", "1.0.0-rc2"])
def test_a_release_candidate_is_found_however_its_tag_is_spelled(
    upstream: Path, tmp_path: Path, tag: str
) -> None:
    subprocess.run(["git", "tag", tag], cwd=upstream, check=True)
    version = ExactRelease.parse("1.0.0rc2")
    name, commit = remote.release_of(tmp_path, f"file://{upstream}", version)
    assert name == tag
    assert len(commit) == 40
    other = ExactRelease.parse("1.0.0-rc1")
    with pytest.raises(SupplyError, match=r"has no tag v1\.0\.0-rc1"):
        remote.release_of(tmp_path, f"file://{upstream}", other)
