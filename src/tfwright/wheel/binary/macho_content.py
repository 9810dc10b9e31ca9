"""What is in a macOS library besides its load commands: symbols, GPU code, machine code (layouts of <mach-o/loader.h>, <mach-o/nlist.h>)."""

import struct
from collections.abc import Iterator
from dataclasses import replace
from io import SEEK_END
from itertools import pairwise
from typing import IO, NamedTuple

from tfwright.wheel.binary import cpu, elf, elf_symbols, fatbin, macho
from tfwright.wheel.binary.elf_symbols import Symbols
from tfwright.wheel.binary.machine_code import Code
from tfwright.wheel.binary.macho import MachO

CUDA = (b"__nv_fatbin", b"__nv_relfatbin")
"""Where nvcc for macOS puts fat binaries."""
_SEGMENT, _SYMBOLS = 0x19, 0x2
"""LC_SEGMENT_64, LC_SYMTAB."""
_64_BIT = 0x01000000
"""In the number of every machine with 64 bits."""
_SEGMENT_HEAD, _SECTION, _NAME = 72, 80, 16
_ROW = struct.Struct("<IBBHQ")
"""Place of the name, type, number of the section from 1, description, address."""
_DEBUGGING, _PRIVATE, _KIND, _HERE, _SHARED = 0xE0, 0x10, 0x0E, 0x0E, 0x01


class ContentSection(NamedTuple):
    """A section of a 64-bit library."""

    name: bytes
    address: int
    start: int
    """Where in the file it is."""
    size: int


class NlistRow(NamedTuple):
    """A symbol that is defined in the library."""

    name: int
    """Where in the table of names it stands."""
    shared: bool
    section: int
    address: int


def read(stream: IO[bytes], parts: tuple[MachO, ...]) -> tuple[MachO, ...]:
    """Return the parts of a library, in their order in it, with what is in them; only 64-bit little-endian ones are known.

    Raises ValueError or struct.error where its tables do not agree with each other.
    """
    starts = macho.starts(stream)
    return tuple(_filled(stream, start, part) for start, part in zip(starts, parts, strict=True))


def _filled(stream: IO[bytes], start: int, part: MachO) -> MachO:
    """Return one machine's part with what is in it."""
    machine, order, commands = macho.load_commands(stream, start)
    if order != "<" or not machine & _64_BIT:
        return part
    sections = [
        section for kind, body in commands if kind == _SEGMENT for section in _sections(body, start)
    ]
    tables = [
        struct.unpack_from("<4I", body, macho.HEAD) for kind, body in commands if kind == _SYMBOLS
    ]
    if not tables:
        return part
    place, count, names, length = tables[0]
    table = _piece(stream, start + place, count * _ROW.size)
    found = [
        name
        for section in sections
        if section.name in CUDA
        for name in fatbin.architectures(stream, section.start, section.size)
    ]
    code = (
        _code(stream, sections, _rows(table), start + names) if part.machine == "x86_64" else None
    )
    symbols = _symbols(_piece(stream, start + names, length), _rows(table))
    return replace(
        part,
        architectures=elf.ordered(found),
        symbols=symbols,
        cpu=cpu.read(code) if code else None,
    )


def _sections(segment: bytes, shift: int) -> Iterator[ContentSection]:
    """Return the sections of a segment."""
    (count,) = struct.unpack_from("<I", segment, _SEGMENT_HEAD - 8)
    for place in range(_SEGMENT_HEAD, _SEGMENT_HEAD + count * _SECTION, _SECTION):
        address, size, start = struct.unpack_from("<QQI", segment, place + 2 * _NAME)
        yield ContentSection(
            segment[place : place + _NAME].rstrip(b"\0"), address, shift + start, size
        )


def _rows(table: bytes) -> Iterator[NlistRow]:
    """Return the symbols that are defined here; what debuggers alone use is left out."""
    for name, kind, section, _, address in _ROW.iter_unpack(table):
        if not kind & _DEBUGGING and kind & _KIND == _HERE:
            yield NlistRow(name, bool(kind & _SHARED) and not kind & _PRIVATE, section, address)


def _symbols(names: bytes, rows: Iterator[NlistRow]) -> Symbols:
    """Say what of the symbols matters to whoever links or loads the library."""
    exports = tensorflow = 0
    for row in rows:
        exports += row.shared
        tensorflow += (
            row.shared and elf_symbols.TENSORFLOW in names[row.name : names.find(b"\0", row.name)]
        )
    return Symbols(exports, tensorflow, elf_symbols.REGISTRY in names)


def _code(
    stream: IO[bytes], sections: list[ContentSection], rows: Iterator[NlistRow], names: int
) -> Code | None:
    """Return the machine code; each function ends where the next begins."""
    number = next(
        (number for number, section in enumerate(sections, 1) if section.name == b"__text"), 0
    )
    if not number:
        return None
    _, address, start, size = sections[number - 1]
    if start + size > stream.seek(0, SEEK_END):
        raise ValueError(f"its code says that it has {size:,} bytes, and the file ends before them")
    places = sorted(
        {
            row.address: row.name
            for row in rows
            if row.section == number and 0 <= row.address - address < size
        }.items()
    )
    ends = pairwise([*places, (address + size, 0)])
    return Code(
        stream,
        start,
        size,
        [(start + here - address, end - here, names + name) for (here, name), (end, _) in ends],
    )


def _piece(stream: IO[bytes], start: int, size: int) -> bytes:
    """Read a table whose size is the file's own claim."""
    if size > elf_symbols.LARGEST:
        raise ValueError(f"its table at {start:#x} says that it has {size:,} bytes")
    stream.seek(start)
    content = stream.read(size)
    if len(content) < size:
        raise ValueError(f"its table at {start:#x} ends after the file")
    return content
