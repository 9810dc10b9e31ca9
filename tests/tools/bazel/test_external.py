"""The external repositories in an output base, which Bazel believes."""

import json
import os
from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.pipeline.external import changed_repositories, discard_repository, record_repositories


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Make an output base with one archive and Bazel's own link."""
    base = tmp_path / "base"
    make_file(base / "external/eigen/Eigen/Core", "int one;\n")
    (base / "external/@eigen.marker").write_text("made\n", "utf-8")
    (base / "external/bazel_tools").symlink_to(tmp_path)
    return base


def test_a_repository_as_bazel_left_it_is_unchanged(base: Path, tmp_path: Path) -> None:
    kept = tmp_path / "external.json"
    record_repositories(base, kept)
    (base / "external/eigen/Eigen/Core").touch()
    (base / "external/new").mkdir()
    assert changed_repositories(base, kept) == []


def test_the_bytes_of_a_repository_that_looks_as_before_are_not_read_again(
    base: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "external.json"
    record_repositories(base, kept)
    glance, _ = json.loads(kept.read_bytes())["eigen"]
    kept.write_text(json.dumps({"eigen": [glance, "as read before"]}), "utf-8")
    record_repositories(base, kept)
    assert "as read before" in kept.read_text("utf-8")


@pytest.mark.parametrize("harm", ["edit", "add", "remove", "link"])
def test_a_change_is_seen_also_where_the_time_is_put_back(
    base: Path, tmp_path: Path, harm: str
) -> None:
    kept = tmp_path / "external.json"
    record_repositories(base, kept)
    source = base / "external/eigen/Eigen/Core"
    state = source.stat()
    if harm == "edit":
        source.write_text("int two;\n", "utf-8")
        os.utime(source, ns=(state.st_atime_ns, state.st_mtime_ns))
    elif harm == "add":
        source.with_name("More").touch()
    else:
        source.unlink()
    if harm == "link":
        source.symlink_to("/etc/hostname")
    assert changed_repositories(base, kept) == ["eigen"]
    discard_repository(base, "eigen")
    assert [path.name for path in (base / "external").iterdir()] == ["bazel_tools"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"eigen": 1}', '{"eigen": [1, 2]}'])
def test_a_damaged_record_is_none(base: Path, tmp_path: Path, text: str) -> None:
    kept = make_file(tmp_path / "external.json", text)
    assert changed_repositories(base, kept) == []
