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
    # Children inherit it, and it takes effect at exec: this process keeps its
    # addresses.
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
        # Docker's default seccomp profile refuses it, so only a try can say.
        with off():
            return None
    except OSError as fault:
        return f"this system does not allow it ({fault.strerror})"


def _personality(persona: int) -> int:
    """Call personality(2); return what held before."""
    # Python has no call for it; the C library is in the process already.
    library = ctypes.CDLL(None, use_errno=True)
    before = int(library.personality(ctypes.c_ulong(persona)))
    if before == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return before
