"""A Linux library as the loader maps it: by its program headers and its dynamic table.

Sections are for linkers and debuggers. The loader never looks at them, so a file may have none, or
sections that say something else than the loader finds. What a library needs is therefore read here
only from what the loader reads. Where two loaders could read different things (two dynamic tables,
segments on top of each other), nothing can be judged, and ValueError says so. Sections serve where
a lie in them does no harm: to name functions, and to say in which part two libraries differ.

Why no library reads ELF here: lief 1.0 copies the file twice (1.4 GB for a TensorFlow of 0.8 GB,
2.1 GB for a sparse file of 1 GiB with small tables), and takes two dynamic tables and segments on
top of each other without a word. pyelftools reads by sections, follows every size and every chain
that a file claims, and takes five times as long for the symbols of a TensorFlow; it serves the
tests as a second opinion. The layouts are those of the System V ABI and of <elf.h>.
"""

import mmap
import struct
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

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


def read_bytes(content: Content, start: int, size: int, what: str) -> bytes:
    """Return `size` bytes from `start` on; raise ValueError if the file does not have them all.

    `what` names the piece in the error: sizes and places are claims of the file itself.
    """
    # Python would take a negative start as counted from the end, and cut a slice silently.
    if start < 0 or size < 0 or start + size > len(content):
        raise ValueError(f"its {what} should be {size:,} bytes at {start:#x}, outside the file")
    return bytes(content[start : start + size])


def read_numbers(content: Content, layout: str, start: int, what: str) -> tuple[int, ...]:
    """Return the numbers at `start`, laid out as `struct` says.

    Raises ValueError if they are outside the file.
    """
    return struct.unpack(layout, read_bytes(content, start, struct.calcsize(layout), what))


def until_nul(field: bytes) -> str:
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
    strings: tuple[str, ...] = ()
    """The std::string of its interface: ``cxx11``, ``before cxx11``, both or none."""
    missing: tuple[str, ...] = ()
    """What it needs and no library in its reach provides; the first few."""


MAGIC = b"\x7fELF"
PROGRAM, SHARED = 2, 3
"""ET_EXEC and ET_DYN; only the second can be loaded as a library."""
UNCOUNTED = 0xFFFF
"""PN_XNUM: the number of program headers stands in a section, where the loader does not look."""
PAGE = 4096
"""Bytes. Segments are mapped by whole pages, so two of them may not share one."""
MOST = 10_000
"""Entries that a dynamic table may have, and sections that a file may; of each a TensorFlow has
less than a hundred."""
LONGEST_NAME = 256
"""Bytes of a section's name that are read."""

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
SYMBOL_TABLE, EMPTY = 2, 8
"""SHT_SYMTAB, SHT_NOBITS (takes no room in the file)."""
WEAK = 2
"""STB_WEAK."""
_RELOCATIONS = ((7, 8), (17, 18), (23, 2))
"""Address and bytes of each table of relocations: DT_RELA, DT_REL, DT_JMPREL with DT_PLTRELSZ."""
_RELOCATIONS_KIND = 20
"""DT_PLTREL: of which kind, DT_RELA or DT_REL, the relocations of DT_JMPREL are."""


class _Layouts(NamedTuple):
    """How the tables are laid out, without the byte order."""

    header: str
    """What follows e_ident."""
    segment: str
    entry: str
    section: str
    symbol: str
    word: str


_WIDE = _Layouts("HHIQQQIHHHHHH", "IIQQQQQQ", "qQ", "IIQQQQIIQQ", "IBBHQQ", "Q")
_NARROW = _Layouts("HHIIIIIHHHHHH", "IIIIIIII", "iI", "IIIIIIIIII", "IIIBBH", "I")


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


class ElfSymbol(NamedTuple):
    """A dynamic symbol."""

    name: bytes
    weak: bool
    defined: bool
    """Whether the library has it itself."""
    versioned: bool
    """Whether its version has a name."""


class ElfImage:
    """A library with its memory as the loader lays it out."""

    def __init__(self, content: Content) -> None:
        """Read the header, the segments and the dynamic table.

        Raises ValueError for what no loader takes, and for what cannot be judged.
        """
        self.content = content
        identity = read_bytes(content, 0, 16, "header")
        if identity[:4] != MAGIC:
            raise ValueError("it is not an ELF file")
        if identity[4] not in {1, 2} or identity[5] not in {1, 2}:
            raise ValueError("its header has a class or a byte order that does not exist")
        self.wide = identity[4] != 1
        self.order = "<" if identity[5] == 1 else ">"
        """The byte order, as `struct` writes it."""
        self._layouts = _WIDE if self.wide else _NARROW
        fields = read_numbers(content, self.order + self._layouts.header, 16, "header")
        kind, self.machine, _, _, start, self._sections_start, _, _, width, count, *rest = fields
        self._section_size, self._section_count, self._section_names = rest
        # Old wheels bring programs that are not position-independent: toco.
        if kind not in {PROGRAM, SHARED}:
            raise ValueError(f"it is an ELF file of type {kind}, neither a program nor a library")
        self.segments = list(self._read_segments(start, width, count))
        self.loaded = [segment for segment in self.segments if segment.kind == LOAD]
        """Those that the loader maps."""
        # Refuse segments that are mapped on top of each other, or from beyond the file.
        end = 0
        for segment in self.loaded:
            # The later mapping wins, and what was read from the earlier one would not be there.
            if segment.address // PAGE < -(-end // PAGE):
                raise ValueError("cannot be judged: its segments lie on top of each other")
            # mmap maps whole pages: the kernel refuses other offsets.
            if segment.address % PAGE != segment.offset % PAGE:
                raise ValueError("its segments cannot be mapped: they are not aligned alike")
            if segment.size > segment.memory:
                raise ValueError("one of its segments has more bytes in the file than in memory")
            end = segment.address + segment.memory
        self.entries = list(self._read_entries())
        """The dynamic table: tag and value, in its order."""

    def _read_segments(self, start: int, width: int, count: int) -> Iterator[Segment]:
        layout = self.order + self._layouts.segment
        if count == UNCOUNTED:
            raise ValueError("cannot be judged: it has more program headers than the loader reads")
        if width != struct.calcsize(layout):
            raise ValueError(f"its program headers have {width} bytes each")
        table = read_bytes(self.content, start, count * width, "table of program headers")
        for fields in struct.iter_unpack(layout, table):
            # The flags stand in another place where the file has 32 bits.
            if self.wide:
                kind, flags, offset, address, _, size, memory, _ = fields
            else:
                kind, offset, address, _, size, memory, flags, _ = fields
            yield Segment(kind, flags, offset, address, size, memory)

    def _read_entries(self) -> Iterator[tuple[int, int]]:
        tables = [segment for segment in self.segments if segment.kind == DYNAMIC]
        if not tables:
            raise ValueError("it has no dynamic table, without which nothing loads it")
        if len(tables) > 1:
            raise ValueError("cannot be judged: it has more than one dynamic table")
        # At the address where the loader looks for it, whatever its offset says.
        start, end = self.file_range(tables[0].address)
        layout = self.order + self._layouts.entry
        width = struct.calcsize(layout)
        for place in range(start, min(end - width + 1, start + MOST * width), width):
            tag, value = read_numbers(self.content, layout, place, "dynamic table")
            if tag == 0:
                return
            # Tags are signed in the file; the constants above are as <elf.h> writes them.
            yield tag & 0xFFFFFFFF, value
        raise ValueError("its dynamic table does not end")

    def value(self, tag: int) -> int | None:
        """Return the value of a tag; of several the last one counts, as for glibc's loader."""
        return next((value for own, value in reversed(self.entries) if own == tag), None)

    def strings(self, tag: int) -> list[str]:
        """Return the texts of all entries with a tag."""
        what = "name of a library or directory"
        return [self.string(value, what) for own, value in self.entries if own == tag]

    def file_range(self, address: int) -> tuple[int, int]:
        """Return where in the file an address lies, and where the file's part of its segment ends.

        Raises ValueError for an address that is not mapped from the file.
        """
        for segment in self.loaded:
            if segment.address <= address < segment.address + segment.size:
                start = segment.offset + address - segment.address
                return start, segment.offset + segment.size
        raise ValueError(f"it points to {address:#x}, where it has nothing in memory")

    def string(self, offset: int, what: str) -> str:
        """Return a text of the dynamic string table, which must end in its segment."""
        strings = self.value(STRINGS)
        if strings is None:
            raise ValueError("its dynamic table has no string table")
        start, end = self.file_range(strings + offset)
        # find() and not a copy: a table of names may have a hundred megabytes.
        stop = self.content.find(b"\0", start, min(end, len(self.content)))
        if stop < 0:
            raise ValueError(f"its {what} at {start:#x} does not end where its texts end")
        return until_nul(bytes(self.content[start:stop]))

    def read_bytes(self, address: int, size: int, what: str) -> bytes:
        """Return `size` bytes at an address; raise ValueError if its segment ends before."""
        start, end = self.file_range(address)
        if start + size > end:
            raise ValueError(f"its {what} at {address:#x} goes beyond its segment")
        return read_bytes(self.content, start, size, what)

    def read_numbers(self, layout: str, address: int, what: str) -> tuple[int, ...]:
        """Return numbers at an address, laid out as `struct` says without the byte order."""
        row = struct.Struct(self.order + layout)
        return row.unpack(self.read_bytes(address, row.size, what))

    def _read_array(self, kind: str, address: int, count: int, what: str) -> "array[int]":
        """Return a table of numbers at an address."""
        words = array(kind)
        if count:
            words.frombytes(self.read_bytes(address, count * words.itemsize, what))
        if (self.order == "<") != (sys.byteorder == "little"):
            words.byteswap()
        return words

    @cached_property
    def symbol_count(self) -> int:
        """How many dynamic symbols there are, which no table says.

        The tables of hashes know those that the library gives to others, and its relocations those
        that it wants. What neither reaches, the loader does not look at.
        """
        address = self.value(HASH)
        # nbucket and nchain: the chains have one entry for each symbol.
        hashed = (
            self.read_numbers("II", address, "table of hashes")[1] if address is not None else 0
        )
        return max(hashed, self._gnu_hash_count(), self._relocation_count())

    def _gnu_hash_count(self) -> int:
        """Return the number of symbols up to the last one in DT_GNU_HASH."""
        address = self.value(GNU_HASH)
        if address is None:
            return 0
        # nbuckets, symoffset, bloom_size and bloom_shift, as linkers call them.
        heads, first, words, _ = self.read_numbers("4I", address, "table of hashes")
        buckets = address + 16 + words * (8 if self.wide else 4)
        last = max(self._read_array("I", buckets, heads, "table of hashes"), default=0)
        if last < first:
            return first
        chain, end = self.file_range(buckets + 4 * heads + 4 * (last - first))
        # Each word of a chain is a hash, whose lowest bit says that the chain ends here.
        for place in range(chain, end - 3, 4):
            (word,) = struct.unpack_from(f"{self.order}I", self.content, place)
            if word & 1:
                return last + 1 + (place - chain) // 4
        raise ValueError("its table of hashes does not end")

    def _relocation_count(self) -> int:
        """Return the number of symbols up to the last one that a relocation names."""
        rela = _RELOCATIONS[0][0]
        last = 0
        for tag, length in _RELOCATIONS:
            address, size = self.value(tag), self.value(length)
            if address is None or not size:
                continue
            # The table for calls may be of either kind, and says itself of which.
            kind = self.value(_RELOCATIONS_KIND) if tag == _RELOCATIONS[-1][0] else tag
            columns = 3 if kind == rela else 2
            whole = size // (columns * struct.calcsize(self._layouts.word))
            words = self._read_array(
                self._layouts.word, address, whole * columns, "table of relocations"
            )
            # r_info: the symbol in the upper 32 bits, or 24 where the file has 32 bits.
            last = max(last, max(words[1::columns], default=0) >> (32 if self.wide else 8))
        return last + 1 if last else 0

    def symbol_table(self) -> bytes:
        """Return the rows of the dynamic symbols, as they lie in the file."""
        address = self.value(SYMBOLS)
        count = self.symbol_count
        if address is None or not count:
            return b""
        width = struct.calcsize("<" + self._layouts.symbol)
        return self.read_bytes(address, count * width, f"table of {count:,} symbols")

    @cached_property
    def names(self) -> NameTable:
        """The names of the dynamic symbols."""
        address = self.value(STRINGS)
        if address is None:
            return NameTable(b"")
        start, end = self.file_range(address)
        stated = self.value(STRINGS_SIZE)
        # DT_STRSZ is a claim: a name that begins inside may end where the segment does.
        size = end - start if stated is None else min(stated, end - start)
        return NameTable(read_bytes(self.content, start, size, "table of names"))

    def symbols(self) -> Iterator[ElfSymbol]:
        """Return the dynamic symbols.

        Raises ValueError where the tables do not agree with each other.
        """
        versions = self._versions
        name = self.names.name
        for number, row in enumerate(
            struct.iter_unpack(self.order + self._layouts.symbol, self.symbol_table())
        ):
            info, section = (row[1], row[3]) if self.wide else (row[3], row[5])
            # The first number of a version with a name is 2; the highest bit hides it from linkers.
            versioned = number < len(versions) and versions[number] & 0x7FFF > 1
            yield ElfSymbol(name(row[0]), info >> 4 == WEAK, section != 0, versioned)

    @cached_property
    def _versions(self) -> "array[int]":
        """The number of each symbol's version; none where no symbol has one."""
        address = self.value(VERSIONS)
        count = self.symbol_count if address is not None else 0
        return self._read_array("H", address or 0, count, "table of versions")

    def name_with_version(self, index: int) -> str:
        """Return the name of the first symbol that has a version, by the version's number."""
        if index not in self._versions:
            return ""
        rows = self.symbol_table()
        layout = self.order + self._layouts.symbol
        at = self._versions.index(index) * struct.calcsize(layout)
        # A damaged library may have versions without a table of symbols.
        if at >= len(rows):
            return ""
        return self.string(struct.unpack_from(layout, rows, at)[0], "name of a symbol")

    def sections(self) -> list[ElfSection]:
        """Return the sections by number; none where their table is missing or not whole.

        Raises ValueError where the file says that it has too many.
        """
        layout = self.order + self._layouts.section
        width = struct.calcsize(layout)
        start, content = self._sections_start, self.content
        if not start or self._section_size != width or start + width > len(content):
            return []
        # More than fit into the header: their number is the size of the first one.
        count = self._section_count or struct.unpack_from(layout, content, start)[5]
        if count > MOST:
            raise ValueError(f"it says that it has {count:,} sections")
        table = bytes(content[start : start + count * width])
        # Cut off, the last sections could be any; sstrip removes the whole table.
        if len(table) != count * width or self._section_names >= count:
            return []
        rows = list(struct.iter_unpack(layout, table))
        first, end = rows[self._section_names][4], sum(rows[self._section_names][4:6])
        sections = []
        for name, kind, flags, address, offset, size, link, *_ in rows:
            # One that leaves the file makes the table a lie, and its numbers lead elsewhere. The
            # first section is empty by definition, and may hold counts in its fields.
            if kind not in {0, EMPTY} and offset + size > len(content):
                return []
            named = bytes(content[first + name : min(first + name + LONGEST_NAME, end)])
            sections.append(ElfSection(until_nul(named), kind, flags, address, offset, size, link))
        return sections
