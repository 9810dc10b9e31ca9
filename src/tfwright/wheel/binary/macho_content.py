"""What is in a macOS library apart from its load commands: symbols, GPU code, machine code.

The layouts are those of <mach-o/loader.h> and <mach-o/nlist.h>.
"""

import struct
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from tfwright.wheel.binary import cpu, elf, elf_symbols, fatbin, macho
from tfwright.wheel.binary.content import Content, piece
from tfwright.wheel.binary.elf_symbols import Symbols
from tfwright.wheel.binary.machine_code import Code
from tfwright.wheel.binary.macho import MachO, MachOSection, Slice

_ROW = struct.Struct("<IBBHQ")
"""Place of the name, type, number of the section from 1, description, address."""
_SYMBOLS_SIZE = 24
"""Bytes of LC_SYMTAB; a damaged one may be shorter."""
_DEBUGGING, _PRIVATE, _KIND, _HERE, _SHARED = 0xE0, 0x10, 0x0E, 0x0E, 0x01
_CODE = "__TEXT,__text"


class NlistRow(NamedTuple):
    """A symbol that is defined in the library."""

    name: int
    """Where in the table of names it stands."""
    shared: bool
    section: int
    address: int


def read(content: Content) -> tuple[MachO, ...]:
    """Return the parts of a library with what is in them; only 64-bit little-endian ones are known.

    Raises ValueError where its tables do not agree with each other.
    """
    return tuple(_filled(content, part) for part in macho.slices(content))


def _filled(content: Content, part: Slice) -> MachO:
    """Return one machine's part with what is in it."""
    read = macho.said(part)
    tables = [body for kind, body in part.commands if kind == macho.SYMBOLS]
    # TensorFlow runs on 64-bit little-endian Macs only; symbols of the others are laid
    # out differently.
    if part.order != "<" or not part.wide or not tables:
        return read
    symbols = tables[0].ljust(_SYMBOLS_SIZE, b"\0")
    place, count, names, length = struct.unpack_from("<4I", symbols, macho.HEAD)
    table = _table(content, part, place, count * _ROW.size)
    texts = _table(content, part, names, length)
    code = None
    if part.machine == "x86_64":
        code = _code(content, part, list(_rows(table)), part.start + names)
    end = part.start + part.size
    gpu = fatbin.architectures(content, part.start, end)
    return replace(
        read,
        architectures=elf.ordered(gpu),
        gpu_bytes=gpu,
        symbols=_symbols(texts, _rows(table)),
        cpu=cpu.read(code) if code else None,
    )


def _table(content: Content, part: Slice, place: int, size: int) -> bytes:
    """Return a table that lies in a part of the file; raise ValueError where it leaves the part."""
    if place + size > part.size:
        raise ValueError(
            f"its table at {place:#x} says that it has {size:,} bytes, and ends after the file"
        )
    return piece(content, part.start + place, size, "table")


def _rows(table: bytes) -> Iterator[NlistRow]:
    """Return the symbols that are defined here; what debuggers alone use is left out."""
    for name, kind, section, _, address in _ROW.iter_unpack(table):
        # N_STAB marks a debugger's entry, N_TYPE is N_SECT where the symbol is in a
        # section.
        if not kind & _DEBUGGING and kind & _KIND == _HERE:
            yield NlistRow(name, bool(kind & _SHARED) and not kind & _PRIVATE, section, address)


def _symbols(names: bytes, rows: Iterator[NlistRow]) -> Symbols:
    """Say what of the symbols matters to whoever links or loads the library."""
    exports = tensorflow = 0
    # As for Linux: names that are the same bytes many times over would take for ever.
    allowed = elf_symbols.OVERLAP * len(names) + (1 << 20)
    for row in rows:
        if not row.shared:
            continue
        exports += 1
        end = names.find(b"\0", row.name)
        if end < 0:
            raise ValueError(f"the name of a symbol, {row.name:#x}, is outside its table of names")
        allowed -= end - row.name
        if allowed < 0:
            raise ValueError("the names of its symbols are the same bytes many times over")
        tensorflow += names.find(elf_symbols.TENSORFLOW, row.name, end) >= 0
    return Symbols(exports, tensorflow, elf_symbols.REGISTRY in names)


def _code(content: Content, part: Slice, rows: list[NlistRow], names: int) -> Code | None:
    """Return the machine code; each function ends where the next begins."""
    texts = [section for section in macho.sections(part) if section.name == _CODE]
    if not texts:
        return None
    text = texts[0]
    if text.offset + text.size > part.size:
        raise ValueError(
            f"its code says that it has {text.size:,} bytes, and the file ends before them"
        )
    start = part.start + text.offset
    functions = list(_functions(text, start, rows, names))
    return Code(content, ((start, start + text.size),), functions)


def _functions(
    text: MachOSection, start: int, rows: list[NlistRow], names: int
) -> Iterator[tuple[int, int, int]]:
    """Return start, size and place of the name of each function in the code."""
    places = {}
    for row in rows:
        if row.section == text.number and 0 <= row.address - text.address < text.size:
            places[row.address] = row.name
    # A Mach-O file holds no sizes of symbols: the last function ends with the section.
    edges = [*sorted(places.items()), (text.address + text.size, 0)]
    for (address, name), (end, _) in pairwise(edges):
        yield start + address - text.address, end - address, names + name
