import subprocess
import sys

import pytest

# What Python itself calls around a fork is interrupted; the signal must not be lost there.
STARTS = """
import os, signal
from pathlib import Path
from tfwright.tools.process import pseudo_terminal, runner
from tfwright.tools.process.command import Command

signal.signal(signal.SIGTERM, signal.default_int_handler)
os.register_at_fork(after_in_parent=lambda: signal.raise_signal(signal.{signal}))
command = Command(("/bin/true",), Path("/"), {{"PATH": os.environ["PATH"]}})
try:
    {start}
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.medium
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize(
    "start",
    ["with runner.child_process(command): pass", "pseudo_terminal.spawn(command, remedy='')"],
)
def test_a_signal_that_comes_while_a_program_starts_is_not_lost(start: str, name: str) -> None:
    code = STARTS.format(start=start, signal=name)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
