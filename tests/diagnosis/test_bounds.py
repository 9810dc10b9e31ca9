"""Whatever a log holds, reading it ends in bounded time and memory."""

import io
import time

import pytest
from tests.diagnosis.reading import diagnose, root_of

from tfwright.diagnosis import log as logs

pytestmark = pytest.mark.medium


def seconds(log: bytes) -> float:
    begun = time.process_time()
    diagnose(log)
    return time.process_time() - begun


@pytest.mark.parametrize(
    "hostile",
    [
        b": " * 500_000,
        b"foo.cc: warning: ERROR: error: undefined reference to " * 80_000,
        b"(" * 4_000_000,
        b"\n" * 1_000_000,
        b"\nERROR: x: error: y" * 100_000,
        b"\x1b[1" * 1_000_000,
        b"error: x\r" * 400_000,
        b"Traceback (most recent call last):\n" * 50_000,
        b'Traceback (most recent call last):\n  File "a", line 1\n' * 30_000,
        (b"undefined reference to `" * 160 + b"\n") * 500,
        (b"/a/b/c.h:1:1: error: " * 180 + b"\n") * 500,
        (b"word_" * 800 + b"Error: \n") * 500,
        (b" " * 4000 + b"error: x\n") * 500,
    ],
    ids=lambda log: repr(log[:24]),
)
def test_hostile_text_takes_a_bounded_time(hostile: bytes) -> None:
    # A thousandth of a second for a kilobyte is what an honest log of errors takes at most.
    assert seconds(hostile) < 8


def test_the_middle_of_a_long_log_is_kept_only_around_errors() -> None:
    fine = b"[1 / 2] Compiling tensorflow/core/kernels/a.cc; 1s local\n" * 100_000
    error = b"ERROR: /t/BUILD:1:1: Linking of rule '//a' failed (Exit 1)\nld: cannot find -lfoo\n"
    made = logs.read(io.BytesIO(fine + error + fine))
    found = diagnose(fine + error + fine)
    assert sum(len(line.text) for line in made.lines) < 9_000_000
    assert found.first is not None
    assert (found.first.what, found.first.line) == ("ld: cannot find -lfoo", 100_002)
    assert found.lines == 200_002


def test_noise_without_end_keeps_memory_bounded() -> None:
    made = logs.read(io.BytesIO(b"error: this is noise\n" * 1_000_000))
    assert len(made.lines) <= logs.MOST_LINES * (2 * logs.EDGE + logs.MIDDLE)


@pytest.mark.parametrize("length", [1, logs.PIECE - 1, logs.PIECE, 3 * logs.PIECE + 7])
def test_lines_are_counted_behind_a_line_of_any_length(length: int) -> None:
    log = b"first\n" + b"x" * length + b"\nerror: third line\n"
    found = diagnose(log)
    assert found.first is not None
    assert (found.first.line, found.lines) == (3, 3)


def test_only_the_beginning_of_a_line_without_end_is_read() -> None:
    line = b"error: begins here " + b"ERROR: undefined reference to `x' " * 100_000
    root = root_of(line)
    assert "undefined reference" in root.what
    assert len(root.what) < 1000
