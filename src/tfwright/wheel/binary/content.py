"""The bytes of a library: how its readers take pieces of them, and the names of its symbols."""

import mmap
import struct
from dataclasses import dataclass

Content = bytes | bytearray | mmap.mmap
"""A whole file: in memory, or mapped where it is too large for that."""

TENSORFLOW = b"10tensorflow"
"""The namespace in a mangled name; what operations of users' own are linked with."""
REGISTRY = b"OpDefBuilder"
"""In the name of every function that TensorFlow's REGISTER_OP calls, in all releases."""
KERNELS = b"OpKernelRegistrar"
"""The same for REGISTER_KERNEL_BUILDER."""
OVERLAP = 8
"""How often the bytes of a table of names may be used.

Linkers let a name be the end of a longer one, so a byte may serve twice. A table in which every
symbol's name is the whole table would keep its reader busy for hours.
"""


def piece(content: Content, start: int, size: int, what: str) -> bytes:
    """Return `size` bytes from `start` on; raise ValueError if the file does not have them all.

    `what` names the piece in the error: sizes and places are claims of the file itself.
    """
    # Python would take a negative start as counted from the end, and cut a slice silently.
    if start < 0 or size < 0 or start + size > len(content):
        raise ValueError(f"its {what} should be {size:,} bytes at {start:#x}, outside the file")
    return bytes(content[start : start + size])


def numbers(content: Content, layout: str, start: int, what: str) -> tuple[int, ...]:
    """Return the numbers at `start`, laid out as `struct` says.

    Raises ValueError if they are outside the file.
    """
    return struct.unpack(layout, piece(content, start, struct.calcsize(layout), what))


def text(field: bytes) -> str:
    """Return the text that a field of bytes holds, up to its NUL."""
    return field.partition(b"\0")[0].decode("utf-8", "backslashreplace")


class NameTable:
    """A library's table of names."""

    def __init__(self, texts: bytes) -> None:
        """Begin with a table none of whose names has been read."""
        self.texts = texts
        self._allowed = OVERLAP * len(texts) + (1 << 20)

    def name(self, place: int) -> bytes:
        """Return the name at a place.

        Raises ValueError for a place outside the table, and for names that are the same bytes again
        and again.
        """
        end = self.texts.find(b"\0", place)
        if end < 0:
            raise ValueError(f"the name of a symbol, {place:#x}, is outside its table of names")
        self._allowed -= end - place
        if self._allowed < 0:
            raise ValueError("the names of its symbols are the same bytes many times over")
        return self.texts[place:end]


@dataclass(frozen=True)
class Symbols:
    """What matters of a library's symbols to whoever links or loads it."""

    exports: int = 0
    """How many it gives to others."""
    tensorflow: int = 0
    """How many of these are in TensorFlow's namespace: what operations of users' own need."""
    registers_ops: bool = False
    """Whether it registers operations, or has what registers them."""
    registers_kernels: bool = False
    """The same of kernels, without which operations cannot run."""
    strings: tuple[str, ...] = ()
    """The std::string of its interface: ``cxx11``, ``before cxx11``, both or none."""
    missing: tuple[str, ...] = ()
    """What it needs and no library in its reach provides; the first few."""
