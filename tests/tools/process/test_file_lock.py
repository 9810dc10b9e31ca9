"""The lock of a recipe: who holds it, what a disk may do to it, and who is named."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from tfwright.errors import HostError
from tfwright.tools.process import file_lock


def refused(path: Path, doing: str = "another") -> HostError:
    """Return the error of whoever asks for a lock."""
    with pytest.raises(HostError) as caught, file_lock.locked(path, doing):
        pass
    return caught.value


def test_who_has_to_wait_is_named_as_typed_and_so_is_the_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/invoke", "lock", "--recipe", "demo"])
    with file_lock.locked(tmp_path / "lock", "on recipe demo"):
        monkeypatch.setattr(sys, "argv", ["/x/invoke", "smoke", "a.whl"])
        fault = refused(tmp_path / "lock", "smoke a.whl")
    assert "'invoke smoke a.whl' has to wait for process" in fault.what
    assert "'invoke lock --recipe demo', on recipe demo" in fault.what
    assert "--wait" not in fault.remedy


def test_a_quoted_word_of_a_command_does_not_end_the_quotes_around_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = ["/x/invoke", "build", "--verified-by", "the maintainers"]
    monkeypatch.setattr(sys, "argv", typed)
    with file_lock.locked(tmp_path / "lock", "on recipe demo"):
        fault = refused(tmp_path / "lock")
    assert fault.what.count("'invoke build --verified-by \"the maintainers\"'") == 2


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": []}', '{"pid": 1e400}', "\xff"])
def test_a_holder_that_left_no_sense_is_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(file_lock, "GRACE_SECONDS", 0.0)
    path = tmp_path / "lock"
    with file_lock.locked(path, "a build"):
        path.write_bytes(text.encode("latin-1"))
        assert "has to wait for another process" in refused(path).what


def test_a_lock_that_cannot_be_described_holds_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file_lock, "_write_holder", full)
    monkeypatch.setattr(file_lock, "GRACE_SECONDS", 0.0)
    with file_lock.locked(tmp_path / "lock", "a build"):
        assert "another process" in refused(tmp_path / "lock").what


def test_a_lock_that_is_a_directory_or_lies_below_a_file_is_an_error_of_this_host(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    assert "directory" in refused(tmp_path).what
    assert "is a file" in refused(tmp_path / "file" / "lock").what


def test_the_holder_is_gone_from_the_file_afterwards(tmp_path: Path) -> None:
    with file_lock.locked(tmp_path / "lock", "a build"):
        assert json.loads((tmp_path / "lock").read_text("utf-8"))["doing"] == "a build"
    assert (tmp_path / "lock").read_bytes() == b""
    assert stat.S_ISREG((tmp_path / "lock").stat().st_mode)


def test_a_named_pipe_in_the_place_of_a_lock_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    assert "is a named pipe" in refused(tmp_path / "lock").what
