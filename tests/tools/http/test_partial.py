"""The beginning of a file, which gets its name only when it is whole."""

import fcntl
import hashlib
import shutil
from pathlib import Path
from typing import BinaryIO

import pytest

from tfwright.tools.http.partial import BusyError, Partial

SHA256 = hashlib.sha256(b"content").hexdigest()


@pytest.fixture
def final(tmp_path: Path) -> Path:
    return tmp_path / "store" / "file"


def test_what_an_earlier_writer_left_is_gone_on_with(final: Path) -> None:
    first = Partial(final, SHA256)
    first.append(b"con")
    first.close()
    second = Partial(final, SHA256)
    assert second.size == 3
    second.append(b"tent")
    second.keep()
    second.close()
    assert final.read_bytes() == b"content"
    assert final.stat().st_mode & 0o777 == 0o444
    with pytest.raises(FileExistsError):
        Partial(final, SHA256)


def test_other_bytes_do_not_get_the_name(final: Path) -> None:
    writer = Partial(final, SHA256)
    writer.append(b"evil")
    with pytest.raises(ValueError, match="does not have the digest"):
        writer.keep()
    writer.close()
    assert not final.exists()


def test_a_file_that_was_whole_before_its_writer_was_killed_gets_its_name(final: Path) -> None:
    final.parent.mkdir()
    final.with_name("partial").write_bytes(b"content")
    with pytest.raises(FileExistsError):
        Partial(final, SHA256)
    assert final.read_bytes() == b"content"


def test_a_second_writer_does_not_disturb_the_first(final: Path) -> None:
    first = Partial(final, SHA256)
    with pytest.raises(BusyError):
        Partial(final, SHA256)
    first.close()
    assert not final.with_name("partial").exists()


def test_a_directory_that_another_process_removed_just_now_is_made_again(
    final: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Path.mkdir
    calls = []

    def removed_at_first(path: Path, **options: bool) -> None:
        made(path, **options)
        calls.append(path)
        if len(calls) == 1:
            shutil.rmtree(path)

    monkeypatch.setattr(Path, "mkdir", removed_at_first)
    Partial(final, SHA256).close()
    assert len(calls) == 2


def test_a_file_that_another_writer_finished_before_we_had_the_lock_is_not_written_to(
    final: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, locked = fcntl.flock, []

    def finished_at_first(stream: BinaryIO, flags: int) -> None:
        locked.append(flags)
        if len(locked) == 1:
            final.with_name("partial").rename(final)
        flock(stream, flags)

    monkeypatch.setattr(fcntl, "flock", finished_at_first)
    with pytest.raises(FileExistsError):
        Partial(final, SHA256)
    assert final.read_bytes() == b""


def test_a_file_without_a_known_digest_begins_anew_each_time(final: Path) -> None:
    first = Partial(final, "")
    first.append(b"con")
    first.close()
    second = Partial(final, "")
    assert second.size == 0
    second.append(b"other")
    second.keep()
    second.close()
    assert final.read_bytes() == b"other"
