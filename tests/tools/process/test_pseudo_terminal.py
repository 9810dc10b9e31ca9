"""Programs on a terminal of their own: how they end, and whether one waits for someone to type."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pexpect
import pytest

from tfwright.tools.process import pseudo_terminal
from tfwright.tools.process.command import Command

needs_system_calls = pytest.mark.skipif(
    not Path("/proc/self/syscall").exists(),
    reason="this system does not tell what a process waits for",
)


def wait_for(happens: Callable[[], object]) -> None:
    """Wait until something is so; fail after half a minute."""
    deadline = time.monotonic() + 30
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def state_of(process: int | None) -> str:
    """Return the letter by which Linux calls what a process does."""
    text = Path(f"/proc/{process}/stat").read_text("utf-8")
    return text.rpartition(")")[2].split()[0]


@pytest.fixture
def child(tmp_path: Path) -> "Iterator[pexpect.spawn[str]]":
    """Run a program that waits for a first line."""
    script = 'read -r first; echo "got $first"; read -r second'
    asks = Command(("/bin/bash", "-c", script), tmp_path, {"PATH": os.defpath})
    with pseudo_terminal.running(asks, remedy="-") as child:
        wait_for(lambda: pseudo_terminal.waits_for_input(child.pid or 0))
        yield child
        child.kill(signal.SIGKILL)


@needs_system_calls
def test_a_stopped_program_does_not_wait_for_input(child: "pexpect.spawn[str]") -> None:
    child.kill(signal.SIGSTOP)
    wait_for(lambda: state_of(child.pid) == "T")
    # The kernel still shows the call in which it was stopped.
    assert pseudo_terminal.waits_for_input(child.pid or 0) is False
    child.kill(signal.SIGCONT)
    wait_for(lambda: pseudo_terminal.waits_for_input(child.pid or 0))


@needs_system_calls
def test_a_line_is_unread_until_its_program_runs_again(child: "pexpect.spawn[str]") -> None:
    child.kill(signal.SIGSTOP)
    wait_for(lambda: state_of(child.pid) == "T")
    assert not pseudo_terminal.has_unread_line(child)
    child.sendline("typed")
    assert pseudo_terminal.has_unread_line(child)
    child.kill(signal.SIGCONT)
    child.expect_exact("got typed")
    assert not pseudo_terminal.has_unread_line(child)


def interrupt(child: "pexpect.spawn[str]") -> NoReturn:
    """Press Ctrl-C once the program runs."""
    child.expect("on and on")
    raise KeyboardInterrupt


@pytest.mark.medium
def test_a_program_that_ignores_an_interrupt_and_goes_on_printing_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pseudo_terminal, "CANCEL_SECONDS", 0.3)
    script = "trap '' INT; while :; do echo on and on; done"
    command = Command(("/bin/bash", "-c", script), tmp_path, {"PATH": os.defpath})
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), pseudo_terminal.running(command, remedy="x") as child:
        interrupt(child)
    assert not child.isalive()
    assert time.monotonic() - begun < 10
