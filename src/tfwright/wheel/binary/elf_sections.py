"""The sections of an ELF file: what linkers and debuggers are given, and the loader never sees.

They serve where a lie in them does no harm: to name functions, and to say in which part two
libraries differ. A table that is missing, or is not whole, is an empty one.
"""

import struct
from typing import NamedTuple

from tfwright.wheel.binary.content import Content
from tfwright.wheel.binary.elf_image import ElfHeader, read_header

MOST = 10_000
"""Sections that a file may have; one that says more lies, to keep its reader busy."""
LONGEST_NAME = 256
"""Bytes of a section's name that are read."""
SYMBOL_TABLE, EMPTY = 2, 8
"""SHT_SYMTAB, SHT_NOBITS (takes no room in the file)."""

_LAYOUTS = {True: "IIQQQQIIQQ", False: "IIIIIIIIII"}


class ElfSection(NamedTuple):
    """A section that lies in the file, or has no bytes there."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    """The number of another section: for a table of symbols, the one with their names."""


def read(content: Content) -> list[ElfSection]:
    """Return the sections by number; none where their table is not whole.

    Raises ValueError where the file is not an ELF file, or says that it has too many.
    """
    header = read_header(content)
    rows = _rows(content, header)
    # sstrip removes the table of sections, and the library still loads.
    if not rows or header.names >= len(rows):
        return []
    names = rows[header.names]
    sections = []
    for row in rows:
        name = _name(content, names[4] + row[0], names[4] + names[5])
        _, kind, flags, address, offset, size, link = row[:7]
        sections.append(ElfSection(name, kind, flags, address, offset, size, link))
    inside = [section for section in sections if _inside(section, len(content))]
    # One that leaves the file makes the table a lie, and its numbers lead elsewhere.
    return sections if len(inside) == len(sections) else []


def _rows(content: Content, header: ElfHeader) -> list[tuple[int, ...]]:
    """Return the headers of the sections, as they stand."""
    layout = header.order + _LAYOUTS[header.wide]
    width = struct.calcsize(layout)
    start = header.sections
    if not start or header.section_size != width or start + width > len(content):
        return []
    count = header.section_count
    if not count:
        # More than fit into the header: their number is the size of the first one.
        count = struct.unpack_from(layout, content, start)[5]
    if count > MOST:
        raise ValueError(f"it says that it has {count:,} sections")
    table = bytes(content[start : start + count * width])
    # Cut off: the table is not whole, and its last sections could be any.
    if len(table) != count * width:
        return []
    return list(struct.iter_unpack(layout, table))


def _name(content: Content, start: int, end: int) -> str:
    """Return a section's name, which lies among the names of all."""
    field = bytes(content[start : min(start + LONGEST_NAME, end)])
    return field.partition(b"\0")[0].decode("utf-8", "backslashreplace")


def _inside(section: ElfSection, size: int) -> bool:
    # The first section is empty by definition, and may hold counts in its fields.
    return section.kind in {0, EMPTY} or section.offset + section.size <= size


def named(sections: list[ElfSection], name: str) -> ElfSection | None:
    """Return the first section of a name that has bytes in the file."""
    for section in sections:
        if section.name == name and section.kind != EMPTY and section.size:
            return section
    return None
