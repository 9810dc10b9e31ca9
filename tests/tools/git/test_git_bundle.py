"""A commit carried as a file, between real small repositories; shallow ones and such that lack files too."""

from pathlib import Path

import pytest
from tests.failing import fails
from tests.upstream import commit, run_git

from tfwright.errors import SupplyError
from tfwright.progress import SILENCE
from tfwright.tools.git import mirror
from tfwright.tools.git.mirror import Origin, Pin
from tfwright.tools.git.repository import GitRepository


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Return a repository with a history."""
    path = tmp_path / "upstream"
    for text in ("first", "second"):
        commit(path, {"kept": text, "large/data": text * 1000}, text)
    for setting in ("uploadpack.allowAnySHA1InWant", "uploadpack.allowFilter"):
        run_git("config", setting, "true", cwd=path)
    return path


def pin_of(upstream: Path, *exclude: str) -> Pin:
    return Pin(
        "https://example.org/upstream.git",
        "main",
        run_git("rev-parse", "HEAD", cwd=upstream),
        exclude,
    )


def carried(upstream: Path, tmp_path: Path, pin: Pin) -> Path:
    """Fetch a pin into one store, and carry it to another; return the mirror there."""
    there = mirror.fetch(pin, tmp_path / "there", Origin.of(str(upstream)), SILENCE, offline=False)
    mirror.write_bundle(there, pin.commit, tmp_path / "file")
    here = mirror.path_of(tmp_path / "here", pin.url)
    mirror.read_bundle(tmp_path / "file", here, pin.commit)
    return here


@pytest.mark.medium
def test_a_commit_arrives_with_its_files_and_without_its_history(
    upstream: Path, tmp_path: Path
) -> None:
    pin = pin_of(upstream)
    here = carried(upstream, tmp_path, pin)
    assert mirror.fetch(pin, tmp_path / "here", Origin.of(pin.url), SILENCE, offline=True) == here
    assert GitRepository(here).text(f"{pin.commit}:kept") == "second"
    assert run_git("rev-list", pin.commit, cwd=here) == pin.commit
    assert run_git("fsck", cwd=here) == ""


@pytest.mark.medium
def test_what_a_recipe_leaves_out_is_left_out(upstream: Path, tmp_path: Path) -> None:
    pin = pin_of(upstream, "large")
    here = carried(upstream, tmp_path, pin)
    mirror.fetch(pin, tmp_path / "here", Origin.of(pin.url), SILENCE, offline=True)
    assert GitRepository(here).text(f"{pin.commit}:large/data") == ""
    with fails(SupplyError, "invoke fetch"):
        mirror.fetch(pin_of(upstream), tmp_path / "here", Origin.of(pin.url), SILENCE, offline=True)


@pytest.mark.medium
def test_git_itself_reads_the_file(upstream: Path, tmp_path: Path) -> None:
    pin = pin_of(upstream)
    carried(upstream, tmp_path, pin)
    assert (
        run_git("bundle", "list-heads", "file", cwd=tmp_path)
        == f"{pin.commit} refs/pins/{pin.commit}"
    )


def test_a_mirror_that_has_the_history_keeps_it(upstream: Path, tmp_path: Path) -> None:
    pin = pin_of(upstream)
    mirror.write_bundle(upstream / ".git", pin.commit, tmp_path / "file")
    run_git("clone", "--quiet", "--bare", upstream, "full.git", cwd=tmp_path)
    mirror.read_bundle(tmp_path / "file", tmp_path / "full.git", pin.commit)
    assert len(run_git("rev-list", pin.commit, cwd=tmp_path / "full.git").split()) == 2
