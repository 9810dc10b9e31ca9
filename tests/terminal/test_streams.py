"""Commands whose standard streams are closed, have lost their reader or have no room."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.making import make_folder

from tfwright.documents.recipe import ROOT
from tfwright.terminal import streams

pytestmark = pytest.mark.medium

INVOKE = f"'{sys.executable}' -m invoke --search-root '{ROOT}'"


def shell(line: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run one line of bash; its status is that of the first command that failed."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


# A pipe holds 64 KiB whether or not it is read: `true` and `exec` close it before that.
@pytest.mark.parametrize(
    "command", ["--list", "build --help", "recipes", "plan", "schema --document recipe"]
)
def test_a_reader_that_has_seen_enough_ends_the_command_quietly(
    command: str, tmp_path: Path
) -> None:
    done = shell(f"{INVOKE} {command} | true", tmp_path)
    assert done.returncode == streams.READER_GONE_STATUS
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("command", ["--list", "recipes"])
def test_output_without_room_is_reported(command: str, tmp_path: Path) -> None:
    done = shell(f"{INVOKE} {command} > /dev/full", tmp_path)
    assert done.returncode == streams.NOT_WRITTEN_STATUS
    assert "Standard output could not be written: No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_ends_no_command(closed: str, tmp_path: Path) -> None:
    done = shell(f"{INVOKE} recipes {closed}", tmp_path)
    assert done.returncode == 0
    # A note about the table is all that may stand there.
    assert [line for line in done.stderr.splitlines() if not line.startswith("stale: ")] == []


@pytest.mark.parametrize("reader", ["2>&1 | true", "2> /dev/full"])
def test_an_error_keeps_its_status_where_its_message_cannot_be_shown(
    reader: str, tmp_path: Path
) -> None:
    assert shell(f"{INVOKE} plan --recipe nosuch {reader}", tmp_path).returncode == 2


@pytest.mark.parametrize("command", ["recipes", "inspect x.whl", "plan --recipe x"])
def test_a_working_directory_that_was_deleted_is_reported(command: str, tmp_path: Path) -> None:
    gone = make_folder(tmp_path / "gone")
    done = shell(f"rmdir '{gone}'; {INVOKE} {command}", gone)
    assert done.returncode == 3
    assert "The working directory cannot be used: No such file" in done.stderr
    assert "Traceback" not in done.stderr


def test_letters_that_an_encoding_lacks_are_escaped(tmp_path: Path) -> None:
    done = shell(f"{INVOKE} recipes", tmp_path, PYTHONIOENCODING="ascii", COLUMNS="40")
    assert done.returncode == 0
    assert "\\u2026" in done.stdout


def test_what_was_typed_never_reaches_the_terminal_raw(tmp_path: Path) -> None:
    done = shell(f"{INVOKE} plan $'--\\e]0;title\\ax'", tmp_path)
    assert done.returncode == 2
    assert "\\x1b]0;title\\x07x" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout


def test_a_pipe_that_another_program_made_non_blocking_gets_everything() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    read: list[bytes] = []

    def read_all() -> None:
        with os.fdopen(reading, "rb") as pipe:
            read.append(pipe.read())

    reader = threading.Thread(target=read_all)
    text = b"x" * (1 << 20)
    descriptor = streams._Descriptor(writing)
    reader.start()
    remaining = memoryview(text)
    while remaining:
        remaining = remaining[descriptor.write(remaining) :]
    os.close(writing)
    reader.join()
    assert read == [text]


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    script = (
        "from tfwright.terminal import streams; streams.open_closed_descriptors();"
        "kept = open('kept', 'w'); assert kept.fileno() > 2, kept.fileno()"
    )
    done = shell(
        f"'{sys.executable}' -c \"{script}\" <&- >&-", tmp_path, PYTHONPATH=str(ROOT / "src")
    )
    assert done.returncode == 0, done.stderr
