"""Programs on a terminal of their own: how they end."""

import os
import time
from pathlib import Path
from typing import NoReturn

import pexpect
import pytest

from tfwright.tools.process import pseudo_terminal
from tfwright.tools.process.command import Command


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
