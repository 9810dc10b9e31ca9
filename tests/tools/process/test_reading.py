"""Whether a program waits for someone to type, as Linux says it."""

import os
import signal
import time
from pathlib import Path

import pytest

from tfwright.tools.process import pseudo_terminal, reading
from tfwright.tools.process.command import Command

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/syscall").exists(),
    reason="this system does not tell what a process waits for",
)


def test_a_program_that_has_not_run_since_a_line_was_typed_does_not_wait(
    tmp_path: Path,
) -> None:
    asks = Command(
        ("/bin/bash", "-c", "read -r first; read -r second"),
        tmp_path,
        {"PATH": os.defpath},
    )
    with pseudo_terminal.running(asks, remedy="-") as child:
        assert child.pid
        deadline = time.monotonic() + 30
        while not reading.waits_for_input(child.pid):
            assert time.monotonic() < deadline
        # A stopped program stands for one that the machine has no time for.
        os.kill(child.pid, signal.SIGSTOP)
        child.sendline("typed")
        # The kernel hands the line over when it has time, which may not be at once.
        while reading.waits_for_input(child.pid):
            assert time.monotonic() < deadline
        os.kill(child.pid, signal.SIGCONT)
        # It has read the line, and waits for the second one.
        while not reading.waits_for_input(child.pid):
            assert time.monotonic() < deadline
