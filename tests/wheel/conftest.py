"""What the tests of wheels share: fat binaries made by hand, in the layout that nvcc writes."""

import struct
from collections.abc import Callable

import pytest

FAT_BINARY_MAGIC = 0xBA55ED50


@pytest.fixture
def container() -> Callable[..., bytes]:
    """Return a function that makes a container; each entry is kind, architecture and flags."""

    def make(*codes: tuple[int, int, int]) -> bytes:
        entries = b"".join(
            struct.pack(
                "<HHIQIIHHIIIQQQ",
                kind,
                0x101,
                64,
                24,
                24,
                0,
                0,
                9,
                number,
                0,
                0,
                0x11 | flags,
                0,
                0,
            )
            + bytes(24)
            for kind, number, flags in codes
        )
        return struct.pack("<IHHQ", FAT_BINARY_MAGIC, 1, 16, len(entries)) + entries

    return make
