"""Where the functions of a library are in its file, as its tables say."""

import struct
from bisect import bisect_right
from dataclasses import dataclass
from io import SEEK_END
from itertools import pairwise
from typing import IO, TYPE_CHECKING, NamedTuple

from tfwright.wheel.binary import elf_symbols

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

LONGEST_NAME = 4096
"""Bytes of a function's name that are looked at."""
MOST = 4_000_000
"""Functions that a library may have; the largest TensorFlow has 800,000."""
_FUNCTIONS = {2, 10}
"""Types of a symbol: STT_FUNC, and STT_GNU_IFUNC, which asks at run time which function it stands for."""
_FRAMES = struct.Struct("<4BiI")
"""Head of .eh_frame_hdr: version, three encodings, place of .eh_frame, number of rows."""
_SIGNED_FROM_HERE = (1, 0x03, 0x3B)
"""The version and the encodings that compilers write: the number as it is, the rows in 32 bits from the section's start."""


class MachineFunction(NamedTuple):
    """A function: where in the file its code starts, its size, and where its name is (0 where it has none)."""

    start: int
    size: int
    name: int


@dataclass(frozen=True)
class Code:
    """The machine code of a library."""

    stream: IO[bytes]
    start: int
    size: int
    functions: list[tuple[int, int, int]]
    """As `Function`, in the order in which they lie in the file; plain tuples, of which a million take half the time."""

    def name(self, function: MachineFunction) -> str:
        """Return a function's name as the linker knows it; empty where the library keeps none."""
        self.stream.seek(function.name)
        return (
            self.stream.read(LONGEST_NAME).partition(b"\0")[0].decode("utf-8", "replace")
            if function.name
            else ""
        )

    def read(self, start: int, size: int) -> bytes:
        """Return bytes of the file."""
        self.stream.seek(start)
        return self.stream.read(size)

    def at(self, place: int) -> MachineFunction | None:
        """Return the function that a place in the file belongs to."""
        number = bisect_right(self.functions, (place, self.size, 0)) - 1
        found = MachineFunction(*self.functions[number]) if number >= 0 else None
        return found if found and place < found.start + found.size else None


def of_elf(elf: "ELFFile", stream: IO[bytes]) -> Code | None:
    """Return the code of a Linux library for x86-64; None for another machine, or where there is none.

    Raises ValueError where its tables do not agree with each other.
    """
    text = elf.get_section_by_name(".text")
    if text is None or elf["e_machine"] != "EM_X86_64":
        return None
    address, start, size = text["sh_addr"], text["sh_offset"], text["sh_size"]
    if start + size > stream.seek(0, SEEK_END):
        raise ValueError(f"its code says that it has {size:,} bytes, and the file ends before them")
    functions = _named(elf, address, start, size)
    if elf.get_section_by_name(".symtab") is None:
        # One whose table of symbols was stripped still has the one by which exceptions find their way.
        named = {function[0] for function in functions}
        places = [start + place - address for place in _frames(elf) if 0 <= place - address < size]
        functions += [
            (place, end - place, 0)
            for place, end in pairwise([*places, start + size])
            if place not in named
        ]
    return Code(stream, start, size, sorted(functions))


def _named(elf: "ELFFile", address: int, start: int, size: int) -> list[tuple[int, int, int]]:
    """Return the functions in .text that a table of symbols names; the full one has all of the dynamic one."""
    section = elf.get_section_by_name(".symtab") or elf.get_section_by_name(".dynsym")
    if section is None:
        return []
    names, shift, end = (
        elf.get_section(section["sh_link"])["sh_offset"],
        start - address,
        address + size,
    )
    return [
        (value + shift, min(length, end - value), names + name)
        for name, info, _, _, value, length in struct.iter_unpack(
            "<IBBHQQ", elf_symbols.whole(section, 24)
        )
        if length and address <= value < end and info & 0xF in _FUNCTIONS
    ]


def _frames(elf: "ELFFile") -> list[int]:
    """Return the addresses of all functions in the sorted table of .eh_frame_hdr (Linux Standard Base, 10.6.2)."""
    section = elf.get_section_by_name(".eh_frame_hdr")
    if section is None:
        return []
    content = elf_symbols.content(section)
    version, _, counted, encoded, _, count = _FRAMES.unpack_from(content)
    if (version, counted, encoded) != _SIGNED_FROM_HERE:
        return []
    rows = struct.iter_unpack("<ii", content[_FRAMES.size : _FRAMES.size + 8 * min(count, MOST)])
    return sorted({section["sh_addr"] + place for place, _ in rows})
