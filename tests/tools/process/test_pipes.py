"""Programs that are read: what they write, and that they end with us."""

from pathlib import Path

import pytest

from tfwright.tools.process import pipes
from tfwright.tools.process.command import Command

PATH = {"PATH": "/usr/bin:/bin"}


def shell(text: str, folder: Path) -> Command:
    return Command(("/bin/sh", "-c", text), folder, PATH)


def test_output_complaint_and_status_are_collected(tmp_path: Path) -> None:
    ended = pipes.collect(shell("echo out; echo why >&2; exit 3", tmp_path))
    assert (ended.status, ended.printed, ended.complaint) == (3, b"out\n", "why\n")


@pytest.mark.parametrize("endless", ["yes", "yes >&2 & yes"])
def test_a_program_that_prints_without_end_is_ended(tmp_path: Path, endless: str) -> None:
    ended = pipes.collect(shell(endless, tmp_path), most=100_000)
    assert ended.excess
    assert len(ended.printed) == 100_000


def test_what_is_complained_of_while_nothing_is_printed_stops_no_program(tmp_path: Path) -> None:
    ended = pipes.collect(shell("head -c 300000 /dev/zero >&2; echo out", tmp_path))
    assert (ended.printed, len(ended.complaint)) == (b"out\n", 300_000)


def test_a_file_is_read_and_another_is_written(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("text", "utf-8")
    with (tmp_path / "given").open("rb") as given, (tmp_path / "into").open("wb") as into:
        ended = pipes.collect(Command(("cat",), tmp_path, PATH), given, into)
    assert (ended.printed, (tmp_path / "into").read_text("utf-8")) == (b"", "text")
