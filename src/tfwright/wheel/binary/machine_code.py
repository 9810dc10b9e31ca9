"""Where the functions of a library are in its file."""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tfwright.wheel.binary import elf_image
from tfwright.wheel.binary.elf_image import Content, ElfImage, Segment, read_bytes, until_nul

LONGEST_NAME = 64 * 1024
"""Bytes of a function's name that are read."""
MOST = 8_000_000
"""Symbols that a library may have; the largest TensorFlow has a million."""
_X86_64 = 62
_FUNCTION, _CHOOSERS = 2, (0x0A, 0x1A, 0x2A)
"""STT_FUNC; STT_GNU_IFUNC, which asks at run time which function it stands for, in the byte that
also says whether a symbol is local, global or weak."""
_SYMBOL = struct.Struct("<IBBHQQ")
"""Name, kind, visibility, section, address, size."""
GAP = 64 * 1024
"""Bytes between two functions that are searched all the same."""
_FRAMES = struct.Struct("<4BiI")
"""Head of .eh_frame_hdr: version, three encodings, place of .eh_frame, number of rows."""
_SIGNED_FROM_HERE = (1, 0x03, 0x3B)
"""The version and the encodings that compilers write: plain numbers, rows in 32 bits from here."""


class MachineFunction(NamedTuple):
    """A function: where in the file its code starts, its size, where its name is (0 for none)."""

    start: int
    size: int
    name: int


@dataclass(frozen=True)
class Code:
    """The machine code of a library."""

    content: Content
    ranges: tuple[tuple[int, int], ...]
    """Start and end of each stretch of the file that holds code."""
    functions: list[tuple[int, int, int]]
    """As `MachineFunction`, by their place in the file; plain tuples take half the time."""
    choosers: int = 0
    """Functions of the kind that picks another one when the library is loaded."""

    def name(self, function: MachineFunction) -> str:
        """Return a function's name as the linker knows it; empty where the library keeps none."""
        if not function.name:
            return ""
        end = self.content.find(b"\0", function.name, function.name + LONGEST_NAME)
        return until_nul(bytes(self.content[function.name : max(end, function.name)]))

    def function_at(self, place: int) -> MachineFunction | None:
        """Return the function that a place in the file belongs to."""
        # A TensorFlow has a million symbols, and each hit of a search asks for its function.
        number = bisect_right(self.functions, (place, len(self.content), 0)) - 1
        found = MachineFunction(*self.functions[number]) if number >= 0 else None
        return found if found and place < found.start + found.size else None


def elf_code(image: ElfImage) -> Code | None:
    """Return the code of a Linux library for x86-64; None for another machine, or without code.

    Raises ValueError where its tables do not agree with each other.
    """
    parts = [part for part in image.loaded if part.flags & elf_image.EXECUTABLE and part.size]
    if not parts or image.machine != _X86_64 or not image.wide:
        return None
    for part in parts:
        if part.offset + part.size > len(image.content):
            raise ValueError(
                f"its code says that it has {part.size:,} bytes, and the file ends before them"
            )
    functions, choosers = _symbol_functions(image, parts)
    frames = _frame_addresses(image)
    if len(functions) < len(frames) / 2:
        # Stripped, or with a table of symbols that is a lie: the frames are what is really used.
        known = {function[0] for function in functions}
        functions += [row for row in _frame_functions(frames, parts) if row[0] not in known]
    functions.sort()
    return Code(image.content, spans(functions), functions, choosers)


def spans(functions: list[tuple[int, int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the stretches of the file that sorted functions take, small gaps included.

    Segments with code hold read-only data too, in a TensorFlow with CUDA hundreds of megabytes.
    """
    found = list[tuple[int, int]]()
    for start, size, _ in functions:
        if found and start <= found[-1][1] + GAP:
            begin, end = found.pop()
            found.append((begin, max(end, start + size)))
        else:
            found.append((start, start + size))
    return tuple(found)


def _symbol_functions(
    image: ElfImage, parts: list[Segment]
) -> tuple[list[tuple[int, int, int]], int]:
    """Return the functions that a table of symbols names, and how many choose another one.

    The full table has all of the dynamic one; where it was stripped, or is a lie that names no
    code, the dynamic one is left.
    """
    for names, table in _symbol_tables(image):
        if len(table) // _SYMBOL.size > MOST:
            raise ValueError(f"it says that it has more than {MOST:,} symbols")
        functions = list[tuple[int, int, int]]()
        for part in parts:
            first, end = part.address, part.address + part.size
            shift = part.offset - part.address
            for name, info, _, _, address, size in _SYMBOL.iter_unpack(table):
                if size and first <= address < end and info & 0xF == _FUNCTION:
                    # A size is a claim of the symbol: it must not lead out of the segment.
                    functions.append((address + shift, min(size, end - address), names + name))
        if functions:
            # The byte with the kind is the fifth of each symbol.
            kinds = table[4 :: _SYMBOL.size]
            return functions, sum(kinds.count(bytes([kind])) for kind in _CHOOSERS)
    return [], 0


def _symbol_tables(image: ElfImage) -> Iterator[tuple[int, bytes]]:
    """Return where the names are, and the symbols, of the full table and of the dynamic one."""
    sections = image.sections()
    for full in sections:
        if full.name == ".symtab" and full.kind != elf_image.EMPTY and full.size:
            if full.kind == elf_image.SYMBOL_TABLE and full.link < len(sections):
                # A table that is cut off in the middle of a row still has its whole rows.
                size = full.size // _SYMBOL.size * _SYMBOL.size
                yield (
                    sections[full.link].offset,
                    read_bytes(image.content, full.offset, size, "symbols"),
                )
            break
    strings = image.value(elf_image.STRINGS)
    if strings is not None:
        yield image.file_range(strings)[0], image.symbol_table()


def _frame_functions(addresses: list[int], parts: list[Segment]) -> Iterator[tuple[int, int, int]]:
    """Return the functions by which exceptions find their way, each up to the next one."""
    for part in parts:
        end = part.address + part.size
        inside = [address for address in addresses if part.address <= address < end]
        # Without symbols the next function is the only end that is known.
        for address, following in pairwise([*inside, end]):
            yield part.offset + address - part.address, following - address, 0


def _frame_addresses(image: ElfImage) -> list[int]:
    """Return the addresses of all functions in the sorted table of .eh_frame_hdr.

    Linux Standard Base, 10.6.2. The segment that holds it is what a running program reads.
    """
    tables = [part for part in image.segments if part.kind == elf_image.FRAMES]
    if not tables or tables[-1].size < _FRAMES.size:
        return []
    address, size = tables[-1].address, tables[-1].size
    content = image.read_bytes(address, size, "table of frames")
    version, _, counted, encoded, _, count = _FRAMES.unpack_from(content)
    # Other encodings are allowed (DW_EH_PE_*); gcc, clang and every linker write these.
    if (version, counted, encoded) != _SIGNED_FROM_HERE:
        return []
    table = content[_FRAMES.size : _FRAMES.size + 8 * min(count, MOST)]
    whole = table[: len(table) // 8 * 8]
    return sorted({address + place for place, _ in struct.iter_unpack("<ii", whole)})
