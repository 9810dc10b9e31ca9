"""Files are replaced as a whole or not at all."""

import os
from pathlib import Path

import pytest

from tfwright.errors import HostError
from tfwright.tools import disk, files


def test_a_block_that_fails_leaves_the_old_content_and_no_litter(
    tmp_path: Path,
) -> None:
    path = tmp_path / "file"
    files.write(path, "old")
    with pytest.raises(FileNotFoundError), files.replacing(path) as temporary:
        temporary.with_name("never there").replace(temporary)
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_block_that_ends_well_replaces_the_content_with_the_mode_asked_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new/file"
    with files.replacing(path, mode=0o755) as temporary:
        temporary.write_bytes(b"content")
    assert path.read_bytes() == b"content"
    assert path.stat().st_mode & 0o777 == 0o755


def test_a_tree_with_read_only_directories_is_removed(tmp_path: Path) -> None:
    inner = tmp_path / "base/execroot"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    inner.chmod(0o555)
    files.remove(tmp_path / "base")
    assert not (tmp_path / "base").exists()


def test_removing_a_link_leaves_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files.remove(tmp_path / "link")
    files.remove(tmp_path / "never there")
    assert (tmp_path / "real").is_dir()


def test_a_named_pipe_is_reported_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read in (files.sha256, files.content):
        with (
            pytest.raises(HostError, match="pipe is a named pipe or a socket"),
            disk.explained(),
        ):
            read(pipe)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("one\ntwo\n", "one\ntwo\n"),
        ("first line\nsecond\n", "second\n"),
        ("a line that has no end", "has no end"),
        ("a line whose end is in the cut\n", "n the cut\n"),
    ],
)
def test_the_end_of_a_log_has_whole_lines_where_there_are_some(
    tmp_path: Path, text: str, shown: str
) -> None:
    log = tmp_path / "log"
    log.write_text(text, "utf-8")
    assert files.tail(log, 10) == shown
