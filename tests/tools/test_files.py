"""Files are replaced as a whole or not at all."""

import errno
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.making import make_file, make_folder

from tfwright.errors import HostError
from tfwright.host.place import Place
from tfwright.tools import disk, files


def test_a_block_that_fails_leaves_the_old_content_and_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write(path, "old")
    with pytest.raises(FileNotFoundError), files.replacing(path) as temporary:
        temporary.with_name("never there").replace(temporary)
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_directory_that_takes_no_file_is_reported_by_the_name_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = OSError(errno.EROFS, "read-only", f"{tmp_path}/.file.a1b2c3")
    monkeypatch.setattr("tempfile.mkstemp", Mock(side_effect=refusal))
    with pytest.raises(OSError, match=r"/file'$"):
        files.write(tmp_path / "file", "new")


def test_a_block_that_ends_well_replaces_the_content_with_the_mode_asked_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new/file"
    with files.replacing(path, mode=0o755) as temporary:
        temporary.write_bytes(b"content")
    assert path.read_bytes() == b"content"
    assert path.stat().st_mode & 0o777 == 0o755


def test_a_tree_with_read_only_directories_is_removed(tmp_path: Path) -> None:
    inner = make_folder(tmp_path / "base/execroot")
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
            disk.as_host_error(),
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, shown: str
) -> None:
    monkeypatch.setattr(files, "TAIL", 10)
    assert files.tail(make_file(tmp_path / "log", text)) == shown


@pytest.mark.parametrize(
    ("limit", "remedy"),
    [
        (errno.EFBIG, "ulimit -f unlimited"),
        (errno.EMFILE, "ulimit -n $(ulimit -Hn)"),
        (errno.EAGAIN, "ulimit -u $(ulimit -Hu)"),
        (errno.ENOMEM, "ulimit -v unlimited"),
    ],
)
def test_a_limit_is_named_with_the_command_that_raises_it(limit: int, remedy: str) -> None:
    with pytest.raises(HostError) as caught, disk.as_host_error():
        raise OSError(limit, os.strerror(limit))
    assert remedy in caught.value.remedy


def test_a_file_larger_than_the_limit_is_the_hosts_fault(tmp_path: Path) -> None:
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from tfwright.errors import HostError\n"
        "from tfwright.tools import disk, files\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n"
        "    with disk.as_host_error():\n"
        f"        files.write(Path({str(tmp_path / 'file')!r}), bytes(10000))\n"
        "except HostError as fault:\n"
        "    print(fault.what)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("A file may not be so large here: ")


def test_the_place_that_is_taken_is_named_and_not_the_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "match.json").mkdir()
    with (
        pytest.raises(HostError, match=r"match\.json is a directory, where a file"),
        disk.as_host_error(),
    ):
        files.write(tmp_path / "match.json", "{}")


def test_a_file_moves_to_another_disk(tmp_path: Path) -> None:
    memory = Path("/dev/shm")  # noqa: S108 a disk that most systems have
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second disk")
    source = make_file(tmp_path / "source", b"content")
    with tempfile.TemporaryDirectory(dir=memory) as other:
        files.move(source, Path(other, "deep/place"), 0o555)
        assert Path(other, "deep/place").read_bytes() == b"content"
        assert Path(other, "deep/place").stat().st_mode & 0o777 == 0o555
        assert [path.name for path in Path(other, "deep").iterdir()] == ["place"]
    assert not source.exists()


def test_what_somebody_removed_meanwhile_is_named(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"stamps/a is not there any more"), disk.as_host_error():
        (tmp_path / "stamps/a").write_text("x", "utf-8")


def test_a_file_that_cannot_move_stays_where_it_is(tmp_path: Path) -> None:
    source, taken = tmp_path / "file", tmp_path / "taken"
    source.write_text("content", "utf-8")
    (taken / "inner").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        files.move(source, taken)
    assert source.read_text("utf-8") == "content"


def test_an_error_that_is_not_about_the_disk_is_shown_as_one() -> None:
    with pytest.raises(ProcessLookupError), disk.as_host_error():
        raise ProcessLookupError(errno.ESRCH, "No such process")


def test_a_disk_that_cannot_be_asked_does_not_count_as_full(tmp_path: Path) -> None:
    assert not disk.is_full(tmp_path / "gone")


def test_a_reason_that_has_no_sentence_of_its_own_is_the_systems() -> None:
    fault = disk.host_error(OSError(errno.EPROTO, "Protocol error"), Path("/srv/x"))
    assert fault.what == "/srv/x cannot be used: Protocol error"


def test_a_limit_of_this_process_is_not_taken_for_a_missing_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    here = Place(tmp_path)
    assert not here.read("/etc/absent")
    monkeypatch.setattr(files, "content", refuse)
    with pytest.raises(OSError, match="Too many open files"):
        here.read("/etc/absent")


@pytest.mark.parametrize(("size", "left"), [(3, b"de"), (5, b""), (9, b"")])
def test_no_more_than_the_wanted_bytes_are_read_and_the_end_may_come_before(
    size: int, left: bytes
) -> None:
    stream = io.BytesIO(b"abcde")
    assert b"".join(files.chunks(stream.read, size)) == b"abcde"[:size]
    assert stream.read() == left
