"""A Linux library as the loader maps it: by its program headers and its dynamic table.

Sections are for linkers and debuggers. The loader never looks at them, so a file may have none, or
sections that say something else than the loader finds. What a library needs is therefore read here
only from what the loader reads. Where two loaders could read different things (two dynamic tables,
segments on top of each other), nothing can be judged, and ValueError says so.

pyelftools reads by sections, and follows every size and every chain that a file claims; it serves
the tests as a second opinion. The layouts are those of the System V ABI and of <elf.h>.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tfwright.wheel.binary.content import Content, numbers, piece, text

MAGIC = b"\x7fELF"
SHARED = 3
"""ET_DYN: the only type of file that can be loaded as a library."""
UNCOUNTED = 0xFFFF
"""PN_XNUM: the number of program headers stands in a section, where the loader does not look."""
PAGE = 4096
"""Bytes. Segments are mapped by whole pages, so two of them may not share one."""
MOST_ENTRIES = 10_000
"""Entries that a dynamic table may have; the one of a TensorFlow has a hundred."""

LOAD, DYNAMIC, FRAMES = 1, 2, 0x6474E550
"""PT_LOAD, PT_DYNAMIC, PT_GNU_EH_FRAME."""
EXECUTABLE = 1
"""PF_X."""

NEEDED, HASH, STRINGS, SYMBOLS, STRINGS_SIZE = 1, 4, 5, 6, 10
"""DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ."""
SONAME, RPATH, RUNPATH = 14, 15, 29
"""DT_SONAME, DT_RPATH, DT_RUNPATH."""
GNU_HASH, VERSIONS, REQUIRED_VERSIONS = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFE
"""DT_GNU_HASH, DT_VERSYM, DT_VERNEED."""

_HEADERS = {True: "HHIQQQIHHHHHH", False: "HHIIIIIHHHHHH"}
"""What follows e_ident, by whether the file has 64 bits."""
_SEGMENTS = {True: "IIQQQQQQ", False: "IIIIIIII"}
_ENTRIES = {True: "qQ", False: "iI"}
_IDENTITY = 16
_WIDE, _NARROW = 2, 1
_LITTLE, _BIG = 1, 2


class Segment(NamedTuple):
    """A stretch of the file, and where the loader puts it."""

    kind: int
    flags: int
    offset: int
    """Where in the file it begins."""
    address: int
    size: int
    """Bytes that the file has of it."""
    memory: int
    """Bytes that it takes in memory; those beyond `size` are zeros."""

    def holds(self, address: int) -> bool:
        """Say whether the file has the byte at an address: not the zeros beyond `size`."""
        return self.address <= address < self.address + self.size


@dataclass(frozen=True)
class ElfHeader:
    """What the header of an ELF file says."""

    wide: bool
    """Whether it has 64 bits."""
    order: str
    """The byte order, as `struct` writes it."""
    kind: int
    machine: int
    segments: int
    """Where the program headers are."""
    sections: int
    """Where the section headers are; 0 where there are none."""
    segment_size: int
    segment_count: int
    section_size: int
    section_count: int
    names: int
    """The number of the section that holds the sections' names."""


@dataclass(frozen=True)
class ElfImage:
    """A library with its memory as the loader lays it out."""

    content: Content
    header: ElfHeader
    segments: tuple[Segment, ...]
    entries: tuple[tuple[int, int], ...]
    """The dynamic table: tag and value, in its order."""

    def value(self, tag: int) -> int | None:
        """Return the value of a tag; of several the last one counts, as for glibc's loader."""
        values = [value for own, value in self.entries if own == tag]
        return values[-1] if values else None

    def place(self, address: int) -> tuple[int, int]:
        """Return where in the file an address lies, and where the file's part of its segment ends.

        Raises ValueError for an address that is not mapped from the file.
        """
        for segment in self.loaded():
            if segment.holds(address):
                start = segment.offset + address - segment.address
                return start, segment.offset + segment.size
        raise ValueError(f"it points to {address:#x}, where it has nothing in memory")

    def text(self, address: int, what: str) -> bytes:
        """Return the text at an address; raise ValueError where it has no end in its segment."""
        start, end = self.place(address)
        return text(self.content, start, end, what)

    def string(self, offset: int, what: str) -> str:
        """Return a text of the dynamic string table."""
        strings = self.value(STRINGS)
        if strings is None:
            raise ValueError("its dynamic table has no string table")
        return self.text(strings + offset, what).decode("utf-8", "backslashreplace")

    def piece(self, address: int, size: int, what: str) -> bytes:
        """Return `size` bytes at an address; raise ValueError if its segment ends before."""
        start, end = self.place(address)
        if start + size > end:
            raise ValueError(f"its {what} at {address:#x} goes beyond its segment")
        return piece(self.content, start, size, what)

    def numbers(self, layout: str, address: int, what: str) -> tuple[int, ...]:
        """Return numbers at an address, laid out as `struct` says without the byte order."""
        row = struct.Struct(self.header.order + layout)
        return row.unpack(self.piece(address, row.size, what))

    def loaded(self) -> Iterator[Segment]:
        """Return the segments that the loader maps."""
        return (segment for segment in self.segments if segment.kind == LOAD)


def load(content: Content) -> ElfImage:
    """Read a library as the loader does.

    Raises ValueError for what no loader takes, and for what cannot be judged.
    """
    header = read_header(content)
    if header.kind != SHARED:
        raise ValueError(f"it is an ELF file of type {header.kind}, and not a shared library")
    segments = tuple(_segments(content, header))
    _refuse_shared_pages(segments)
    # The dynamic table is found by its address, which needs the segments first.
    image = ElfImage(content, header, segments, ())
    return ElfImage(content, header, segments, tuple(_entries(image)))


def read_header(content: Content) -> ElfHeader:
    """Read the header of an ELF file; raise ValueError where it is not one."""
    identity = piece(content, 0, _IDENTITY, "header")
    if identity[:4] != MAGIC:
        raise ValueError("it is not an ELF file")
    if identity[4] not in {_NARROW, _WIDE} or identity[5] not in {_LITTLE, _BIG}:
        raise ValueError("its header has a class or a byte order that does not exist")
    wide = identity[4] == _WIDE
    order = "<" if identity[5] == _LITTLE else ">"
    fields = numbers(content, order + _HEADERS[wide], _IDENTITY, "header")
    kind, machine, _, _, segments, sections, _, _, *sizes = fields
    return ElfHeader(wide, order, kind, machine, segments, sections, *sizes)


def _segments(content: Content, header: ElfHeader) -> Iterator[Segment]:
    """Read the program headers."""
    layout = header.order + _SEGMENTS[header.wide]
    if header.segment_count == UNCOUNTED:
        raise ValueError("cannot be judged: it has more program headers than the loader reads")
    if header.segment_size != struct.calcsize(layout):
        raise ValueError(f"its program headers have {header.segment_size} bytes each")
    table = piece(
        content,
        header.segments,
        header.segment_count * header.segment_size,
        "table of program headers",
    )
    for fields in struct.iter_unpack(layout, table):
        # The flags stand in another place where the file has 32 bits.
        if header.wide:
            kind, flags, offset, address, _, size, memory, _ = fields
        else:
            kind, offset, address, _, size, memory, flags, _ = fields
        yield Segment(kind, flags, offset, address, size, memory)


def _refuse_shared_pages(segments: tuple[Segment, ...]) -> None:
    """Refuse segments that are mapped on top of each other, or from beyond the file."""
    loaded = [segment for segment in segments if segment.kind == LOAD]
    end = 0
    for segment in loaded:
        # The later mapping wins, and what was read from the earlier one would not be in
        # memory.
        if segment.address // PAGE < -(-end // PAGE):
            raise ValueError("cannot be judged: its segments lie on top of each other in memory")
        # mmap maps whole pages: the kernel refuses other offsets.
        if segment.address % PAGE != segment.offset % PAGE:
            raise ValueError("its segments cannot be mapped: file and memory are not aligned alike")
        if segment.size > segment.memory:
            raise ValueError("one of its segments has more bytes in the file than in memory")
        end = segment.address + segment.memory


def _entries(image: ElfImage) -> Iterator[tuple[int, int]]:
    """Read the dynamic table, at the address at which the loader looks for it."""
    tables = [segment for segment in image.segments if segment.kind == DYNAMIC]
    if not tables:
        raise ValueError("it has no dynamic table, without which nothing loads it")
    if len(tables) > 1:
        raise ValueError("cannot be judged: it has more than one dynamic table")
    start, end = image.place(tables[0].address)
    layout = image.header.order + _ENTRIES[image.header.wide]
    width = struct.calcsize(layout)
    for _ in range(MOST_ENTRIES):
        if start + width > end:
            break
        tag, value = numbers(image.content, layout, start, "dynamic table")
        if tag == 0:
            return
        # Tags are signed in the file; the constants above are as <elf.h> writes them.
        yield tag & 0xFFFFFFFF, value
        start += width
    raise ValueError("its dynamic table does not end")
