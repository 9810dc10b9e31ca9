import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tfwright.progress import Progress, RunningAction
from tfwright.terminal import foot

ACTIONS = tuple(
    RunningAction(f"Compiling tensorflow/core/kernels/cwise_op_number_{number}.cc", 100.0 - number)
    for number in range(9)
)
BUSY = Progress(
    1234, 4174, failures=1, held=3 << 30, room=24 << 30, running=ACTIONS, remaining=1500
)


def plain(progress: Progress, room: int) -> list[str]:
    rows = foot.rows_of("compile", progress, room)
    return [
        "".join(str(part if isinstance(part, str) else part.text) for part in row) for row in rows
    ]


def test_the_foot_shows_how_far_the_build_is_and_what_takes_long() -> None:
    first, *others = plain(BUSY, 120)
    assert first == (
        "  compile    1,234 of 4,174 actions (30%), 1 failed, about 25 min 00 s left, 3.0 of 24 GiB"
    )
    assert len(others) == foot.MOST
    assert "1 min 40 s   Compiling tensorflow/core/kernels/cwise_op_number_0.cc" in others[0]


def test_no_line_of_the_foot_is_wider_than_the_terminal() -> None:
    assert max(map(len, plain(BUSY, 60))) <= 60


def test_without_known_actions_the_foot_shows_what_bazel_does() -> None:
    assert plain(Progress(1, None, doing="Analyzing"), 80)[1].strip() == "Analyzing"


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], str]]:
    """Make standard error a terminal; return what reads from it, and how long it waits for more."""
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = os.openpty()

    def read(seconds: float) -> str:
        drawn = b""
        while select.select([ours], [], [], seconds)[0]:
            drawn += os.read(ours, 1 << 16)
        return drawn.decode()

    with open(theirs, "w", encoding="utf-8") as stream:  # noqa: PTH123 a descriptor
        monkeypatch.setattr(sys, "stderr", stream)
        yield read
    os.close(ours)


@pytest.mark.medium
def test_the_foot_is_drawn_now_and_then_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as read:
        drawn = foot.Foot("compile")
        drawn.close()
        drawn.draw(BUSY)
        assert read(0.3).count("compile") == 1
        # A build reports hundreds of times a second.
        monkeypatch.setattr(foot, "REDRAW_SECONDS", 1e9)
        drawn.draw(BUSY)
        assert read(0.1) == ""
        monkeypatch.setattr(foot, "REDRAW_SECONDS", 0.0)
        drawn.draw(BUSY)
        assert read(0.3).count("compile") == 1
        drawn.close()
        # The last lines are erased, from the lowest to the first.
        assert read(0.1).endswith("\x1b[1A\x1b[2K")
