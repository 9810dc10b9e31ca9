import subprocess
from pathlib import Path

import pytest

from tfwright.tools.process import isolation

pytestmark = pytest.mark.skipif(
    isolation.address_obstacle() is not None,
    reason="address-space randomisation cannot be switched off here",
)


def layout() -> str:
    """Return where a program that was just started lies in memory."""
    return subprocess.run(
        ["cat", "/proc/self/maps"], env={}, capture_output=True, text=True, check=True
    ).stdout


def test_programs_lie_at_the_same_addresses_while_it_is_off_and_no_longer() -> None:
    before = Path("/proc/self/personality").read_text("utf-8")
    with isolation.fixed_addresses():
        assert layout() == layout()
    assert layout() != layout()
    assert Path("/proc/self/personality").read_text("utf-8") == before
