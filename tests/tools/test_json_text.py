import os
from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.documents import filesystem
from tfwright.tools import files, json_text
from tfwright.tools.bazel import client
from tfwright.tools.bazel.binary import workspace_texts

DAMAGED = [
    b"",
    b"{",
    b"\xff\xfe{}",
    b"[" * 200_000,
    b'{"a":' * 200_000,
    b"[]",
    b"9" * 5000,
    b"null",
    b'{"seconds": Infinity}',
    b'{"seconds": [NaN]}',
    b'{"seconds": -1e999}',
    b'{"seconds": 1' + b"0" * 400 + b"}",
]


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_of_ours_is_taken_for_a_missing_one(content: bytes, tmp_path: Path) -> None:
    path = make_file(tmp_path / "kept.json", content)
    assert json_text.load_object(path) == {}


@pytest.mark.parametrize("depth", [1_000, 200_000])
def test_deep_brackets_are_an_ordinary_fault(depth: int) -> None:
    with pytest.raises(ValueError, match=r"too deep|Expecting"):
        json_text.parse("[" * depth)


def test_neither_a_pipe_nor_a_directory_is_waited_for(tmp_path: Path) -> None:
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    for path in (pipe, folder, tmp_path / "missing"):
        with pytest.raises(OSError, match=r"named pipe|directory"):
            filesystem.open_file(path)
        assert json_text.load_object(path) == {}


def test_a_pipe_in_the_place_of_a_file_is_removed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    files.remove(pipe)
    assert not os.path.lexists(pipe)


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_what_bazel_said_is_asked_again_where_its_file_is_damaged(
    content: bytes, tmp_path: Path
) -> None:
    (tmp_path / "options.json").write_bytes(content)
    assert client.known_options(tmp_path / "bazel") == client.Options()


@pytest.mark.parametrize("content", [b"{", b'{"a": 1}', b"[" * 200_000, b"\xff"])
def test_the_texts_of_a_bazel_are_read_again_where_they_are_damaged(
    content: bytes, tmp_path: Path
) -> None:
    binary = make_file(tmp_path / "bazel", "#!/bin/sh\n")
    (tmp_path / "workspaces.json").write_bytes(content)
    # A script is no archive, and so has none.
    assert workspace_texts(binary) == {}
    assert (tmp_path / "workspaces.json").read_text() == "{}"
