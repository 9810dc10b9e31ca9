"""Address-space randomisation, which changes what programs that sort by address do."""

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

_NO_RANDOMISATION, _ASK = 0x0040000, 0xFFFFFFFF
"""ADDR_NO_RANDOMIZE of <sys/personality.h>, which setarch -R sets; and what only asks."""


@contextmanager
def off() -> Iterator[None]:
    """Give programs that start in the block, and their children, the same addresses each time.

    Raises OSError where the system does not allow it.
    """
    before = _personality(_ASK)
    _personality(before | _NO_RANDOMISATION)
    try:
        yield
    finally:
        _personality(before)


def obstacle() -> str | None:
    """Say why it cannot be switched off here; None if it can."""
    if platform.system() != "Linux":
        return f"{platform.system()} does not let programs switch it off"
    try:
        with off():
            return None
    except OSError as fault:
        return f"this system does not allow it ({fault.strerror})"


def _personality(persona: int) -> int:
    """Call personality(2); return what held before."""
    library = ctypes.CDLL(None, use_errno=True)
    before = int(library.personality(ctypes.c_ulong(persona)))
    if before == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return before
