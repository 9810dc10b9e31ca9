"""The bytes of a library, and the only ways in which this folder's readers take pieces of them."""

import mmap
import struct

Content = bytes | bytearray | mmap.mmap
"""A whole file: in memory, or mapped where it is too large for that."""


def piece(content: Content, start: int, size: int, what: str) -> bytes:
    """Return `size` bytes from `start` on; raise ValueError if the file does not have them all.

    `what` names the piece in the error: sizes and places are claims of the file itself.
    """
    # Python would take a negative start as counted from the end, and cut a slice
    # silently.
    if start < 0 or size < 0 or start + size > len(content):
        raise ValueError(f"its {what} should be {size:,} bytes at {start:#x}, outside the file")
    return bytes(content[start : start + size])


def numbers(content: Content, layout: str, start: int, what: str) -> tuple[int, ...]:
    """Return the numbers at `start`, laid out as `struct` says.

    Raises ValueError if they are outside the file.
    """
    return struct.unpack(layout, piece(content, start, struct.calcsize(layout), what))


def text(content: Content, start: int, end: int, what: str) -> bytes:
    """Return the text at `start` without its final NUL, which must stand before `end`.

    Raises ValueError if it does not: the loader would read on into whatever follows.
    """
    end = min(end, len(content))
    # find() and not a copy: a table of names may have a hundred megabytes.
    stop = content.find(b"\0", start, end) if 0 <= start < end else -1
    if stop < 0:
        raise ValueError(f"its {what} at {start:#x} does not end where its texts end")
    return bytes(content[start:stop])
