"""Programs without a network, and without random addresses.

One that works with loopback only has proved that it needs no more. Where address-space
randomisation is off, programs that sort by address do the same each time.
"""

import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from tfwright.tools.process import enclosure
from tfwright.tools.process.command import Command, open_container

PROGRAM = Path(enclosure.__file__)
# -I -S: neither PYTHONPATH nor site-packages can put code into the enclosure.
_ENTER = (sys.executable, "-I", "-S", str(PROGRAM))
_NO_RANDOMISATION, _ASK = 0x0040000, 0xFFFFFFFF
"""ADDR_NO_RANDOMIZE of <sys/personality.h>, which setarch -R sets; and what only asks."""
_CLOSED: list[object] = []
"""One item for each running block of `without_network`; threads of a stage see it as well."""


@contextmanager
def without_network() -> Iterator[None]:
    """Let every program that is started in the block run without a network."""
    token = object()
    _CLOSED.append(token)
    try:
        yield
    finally:
        _CLOSED.remove(token)


def host_command(command: Command, *, terminal: bool = False) -> Command:
    """Return the command to start on the host so that `command` runs where programs run now.

    It is enclosed in a block of `without_network`, and runs in the container that is open.
    """
    if _CLOSED and command.argv[: len(_ENTER)] != _ENTER:
        # A program that is not there fails by itself, which is clearer than through the enclosure.
        found = shutil.which(command.argv[0], path=command.env.get("PATH"))
        command = in_own_network(command) if found else command
    inside = open_container()
    # git and the vault stay on the host: an image need not have them, nor see their files.
    if inside is None or command.here:
        return command
    return inside.command(command, terminal=terminal)


def in_own_network(command: Command) -> Command:
    """Return a command in its own network, which has only loopback; its children inherit it."""
    return replace(command, argv=(*_ENTER, *command.argv))


@cache
def isolation_obstacle() -> str | None:
    """Say why this system lets no program run without a network; None if it does. Tried once."""
    if platform.system() != "Linux":
        return f"{platform.system()} has no network namespaces"
    done = subprocess.run(  # noqa: S603 argv is a tuple, never a shell line
        (*_ENTER, "/bin/true"), env={}, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return None
    # Ubuntu 24.04, and many containers, forbid user namespaces to ordinary users.
    return f"this system refuses a network namespace ({done.stderr.strip()})"


@contextmanager
def fixed_addresses() -> Iterator[None]:
    """Give programs that start in the block, and their children, the same addresses each time.

    Raises OSError where the system does not allow it.
    """
    # Python has no call for it.
    before = enclosure.call_libc("personality", _ASK)
    # Children inherit it, and it takes effect at exec: this process keeps its addresses.
    enclosure.call_libc("personality", before | _NO_RANDOMISATION)
    try:
        yield
    finally:
        enclosure.call_libc("personality", before)


def address_obstacle() -> str | None:
    """Say why it cannot be switched off here; None if it can."""
    if platform.system() != "Linux":
        return f"{platform.system()} does not let programs switch it off"
    try:
        # Docker's default seccomp profile refuses it, so only a try can say.
        with fixed_addresses():
            return None
    except OSError as fault:
        return f"this system does not allow it ({fault.strerror})"
