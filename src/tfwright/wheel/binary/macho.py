"""macOS libraries, thin or universal: load commands, sections, symbols, GPU code, machine code.

The layouts are those of <mach-o/loader.h> and <mach-o/nlist.h>. macholib reads every section into
memory to get at the load commands, a gigabyte for a TensorFlow; lief 1.0 takes 2.7 times the file.
"""

import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from tfwright.wheel.binary import cpu, fatbin
from tfwright.wheel.binary.elf import LibraryPart, VersionRequirement
from tfwright.wheel.binary.elf_image import (
    TENSORFLOW,
    Content,
    NameTable,
    Symbols,
    read_bytes,
    read_numbers,
    until_nul,
)
from tfwright.wheel.binary.machine_code import Code

THIN = b"\xcf\xfa\xed\xfe"
"""A file of 64 bits, its numbers little-endian: TensorFlow runs on no other Macs."""
LENGTH = 32
"""Bytes of its header."""
UNIVERSAL = {b"\xca\xfe\xba\xbe": ">4xIII4x", b"\xca\xfe\xba\xbf": ">4xIQQ8x"}
"""How a slice of a universal file is described: machine's subtype, then offset and size."""
MAGICS = (THIN, *UNIVERSAL)
MOST = 64
"""Slices that a universal file may have.

Java's classes begin like one, with their version where the number of slices is.
"""
MOST_COMMANDS = 10_000
"""Load commands that a slice may have; a TensorFlow has fewer than a hundred."""
LARGEST = 16 * 1024**2
"""Bytes that the load commands may take."""

MACHINES = {0x01000007: "x86_64", 0x0100000C: "arm64"}
ID, RPATH = 0xD, 0x8000001C
"""LC_ID_DYLIB and LC_RPATH."""
LOADS = {0xC, 0x80000018, 0x8000001F, 0x20, 0x80000023}
"""LC_LOAD_DYLIB and its weak, re-exporting, lazy and upward kin."""
SYMBOLS, CODE_SIGNATURE = 0x2, 0x1D
"""LC_SYMTAB, LC_CODE_SIGNATURE."""
_MINIMUM = {0x24: 8, 0x32: 12}
"""LC_VERSION_MIN_MACOSX and its successor LC_BUILD_VERSION: where in them the version stands."""
_SEGMENT = 0x19
"""LC_SEGMENT_64."""
_SEGMENT_LAYOUT, _SECTION_LAYOUT = (
    struct.Struct("<8x16s4Q8xI4x"),
    struct.Struct("<16s16s2QI12xI12x"),
)
_ZERO_FILLED = {0x1, 0xC, 0x12}
"""S_ZEROFILL and its kin: sections that take no room in the file."""
HEAD = 8
"""Bytes at the start of every load command: its kind and its size. What follows in one with a
path says at which of its bytes the path starts (``lc_str``)."""
_DEBUGGING, _PRIVATE, _KIND, _IN_SECTION, _SHARED = 0xE0, 0x10, 0x0E, 0x0E, 0x01
"""Of a symbol's type: N_STAB, N_PEXT, N_TYPE, N_SECT, N_EXT."""
CODE = "__TEXT,__text"


class LoadCommand(NamedTuple):
    """A load command."""

    kind: int
    content: bytes
    """All of it, its head included."""


class MachOSection(NamedTuple):
    """A section, or a segment that has none; offsets count from where the slice starts."""

    name: str
    """As ``__TEXT,__text``; a segment's name alone where it has no sections."""
    address: int
    offset: int
    size: int
    number: int
    """By which symbols name it, from 1; 0 for a segment."""


class NlistRow(NamedTuple):
    """A symbol that is defined in the library."""

    name: int
    """Where in the table of names it stands."""
    shared: bool
    section: int
    address: int


class Slice:
    """One machine's part of a library."""

    def __init__(self, content: Content, start: int, size: int) -> None:
        """Read the header and the load commands.

        Raises ValueError where they are not sound.
        """
        if bytes(content[start : start + 4]) != THIN:
            raise ValueError(f"at {start:#x} there is not a Mach-O file of 64 bits")
        self.content = content
        self.start = start
        """Where it starts in the file."""
        self.size = size
        machine, _, _, count, length, _ = read_numbers(content, "<6I4x", start + 4, "header")
        self.machine = MACHINES.get(machine, f"machine {machine}")
        """As ``uname -m`` says it."""
        if length > LARGEST or count > MOST_COMMANDS:
            raise ValueError(f"it says that its {count:,} load commands take {length:,} bytes")
        if LENGTH + length > size:
            raise ValueError(f"its load commands, {length:,} bytes, do not end before it does")
        block = read_bytes(content, start + LENGTH, length, "load commands")
        self.commands = tuple(self._read_commands(block, count))

    def _read_commands(self, block: bytes, count: int) -> Iterator[LoadCommand]:
        start = 0
        for _ in range(count):
            kind, size = read_numbers(block, "<2I", start, "load command")
            if size < HEAD or start + size > len(block):
                raise ValueError(
                    f"its load command at {start:#x} of {len(block):#x} "
                    f"says that it takes {size:,} bytes"
                )
            yield LoadCommand(kind, block[start : start + size])
            start += size

    @property
    def space(self) -> int:
        """Bytes that the load commands may take: up to the first section."""
        # Segments without bytes in the file, as __PAGEZERO, have an offset of 0.
        offsets = [section.offset for section in self.sections() if section.offset]
        return min(offsets, default=self.size) - LENGTH

    def path_start(self, command: LoadCommand) -> int:
        """Return where the path in a load command says that it begins."""
        what = "load command with a path"
        return read_numbers(command.content, "<I", HEAD, what)[0]

    def path(self, command: LoadCommand) -> str:
        """Return the path in a load command; raise ValueError where it has none, as macOS does."""
        start = self.path_start(command)
        path, end, _ = command.content[start:].partition(b"\0")
        if start < HEAD or not end:
            raise ValueError("the path in one of its load commands goes beyond the command")
        return path.decode("utf-8", "surrogateescape")

    def sections(self) -> Iterator[MachOSection]:
        """Return what takes room in the file, in the order of the load commands.

        Of a segment without sections, such as __LINKEDIT, the segment itself.
        """
        number = 0
        for kind, content in self.commands:
            if kind != _SEGMENT:
                continue
            layout, row = _SEGMENT_LAYOUT, _SECTION_LAYOUT
            head = read_bytes(content, 0, layout.size, "segment")
            segment, address, _, offset, size, count = layout.unpack(head)
            # A count is a claim: millions of sections would be listed from one small command.
            if count > (len(content) - layout.size) // row.size:
                raise ValueError(f"one of its segments says that it has {count:,} sections")
            if not count and size:
                yield MachOSection(until_nul(segment), address, offset, size, 0)
            for fields in row.iter_unpack(content[layout.size : layout.size + count * row.size]):
                number += 1
                own, segment, address, size, offset, flags = fields
                # The lower byte of the flags is the section's type.
                if flags & 0xFF not in _ZERO_FILLED and size:
                    name = f"{until_nul(segment)},{until_nul(own)}"
                    yield MachOSection(name, address, offset, size, number)

    def read(self) -> LibraryPart:
        """Return what is in it. Raises ValueError where its tables do not agree with each other."""
        minimums = [
            read_numbers(command.content, "<I", _MINIMUM[command.kind], "load command")[0]
            for command in self.commands
            if command.kind in _MINIMUM
        ]
        requires = {}
        if minimums:
            # Three numbers share a word; of several words the newest holds.
            newest = max(minimums)
            minimum = f"{newest >> 16}.{newest >> 8 & 0xFF}"
            minimum += f".{newest & 0xFF}" if newest & 0xFF else ""
            requires["macOS"] = VersionRequirement(minimum)
        part = LibraryPart(
            system="macOS",
            machine=self.machine,
            needed=self._shown_paths(LOADS),
            search=self._shown_paths({RPATH}),
            requires=requires,
        )
        if all(kind != SYMBOLS for kind, _ in self.commands):
            return part
        rows, names, _ = self.symbols
        shared = [names.name(row.name) for row in rows if row.shared]
        code = self.code()
        return replace(
            part,
            gpu=fatbin.architectures(self.content, self.start, self.start + self.size),
            symbols=Symbols(len(shared), sum(TENSORFLOW in name for name in shared)),
            cpu=cpu.read(code) if code else None,
        )

    def _shown_paths(self, kinds: set[int]) -> tuple[str, ...]:
        """Return the paths in load commands of some kinds, fit to be shown."""
        paths = [self.path(command) for command in self.commands if command.kind in kinds]
        # What is not UTF-8 was kept for writing it back; JSON takes no half characters.
        return tuple(
            path.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for path in paths
        )

    @cached_property
    def symbols(self) -> tuple[list[NlistRow], NameTable, int]:
        """The symbols that are defined here, their names, and where in the file these are.

        What debuggers alone use is left out. Raises ValueError where a table leaves the slice.
        """
        # Of several tables the loader uses one; to read all of them could take for ever.
        for _, body in [command for command in self.commands if command.kind == SYMBOLS][:1]:
            # A damaged command may be shorter than its fields.
            fields = struct.unpack_from("<4I", body.ljust(24, b"\0"), HEAD)
            place, count, names, length = fields
            # Place of the name, type, number of the section from 1, description, address.
            row = struct.Struct("<IBBHQ")
            rows = [
                NlistRow(name, kind & _SHARED > 0 and not kind & _PRIVATE, section, address)
                for name, kind, section, _, address in row.iter_unpack(
                    self._read_table(place, count * row.size)
                )
                if not kind & _DEBUGGING and kind & _KIND == _IN_SECTION
            ]
            return rows, NameTable(self._read_table(names, length)), self.start + names
        return [], NameTable(b""), 0

    def _read_table(self, place: int, size: int) -> bytes:
        if place + size > self.size:
            raise ValueError(
                f"its table at {place:#x} says that it has {size:,} bytes, and ends after the file"
            )
        return read_bytes(self.content, self.start + place, size, "table")

    def code(self) -> Code | None:
        """Return the machine code for x86-64; each function ends where the next begins."""
        texts = [section for section in self.sections() if section.name == CODE]
        if self.machine != "x86_64" or not texts:
            return None
        code = texts[0]
        if code.offset + code.size > self.size:
            raise ValueError(
                f"its code says that it has {code.size:,} bytes, and the file ends before them"
            )
        rows, _, names = self.symbols
        places = {
            row.address: row.name
            for row in rows
            if row.section == code.number and 0 <= row.address - code.address < code.size
        }
        start = self.start + code.offset
        # A Mach-O file holds no sizes of symbols: the last function ends with the section.
        edges = [*sorted(places.items()), (code.address + code.size, 0)]
        functions = [
            (start + address - code.address, end - address, names + name)
            for (address, name), (end, _) in pairwise(edges)
        ]
        return Code(self.content, ((start, start + code.size),), functions)


def slices(content: Content) -> list[Slice]:
    """Read the layout of a library, once for each machine that it is for.

    Raises ValueError where the file is not a sound Mach-O file.
    """
    magic = bytes(content[:4])
    if magic == THIN:
        return [Slice(content, 0, len(content))]
    layout = UNIVERSAL.get(magic)
    (count,) = read_numbers(content, ">I", 4, "header")
    # 0xCAFEBABE also begins Java's classes, whose version would be a count of 45 and more.
    if layout is None or not 0 < count <= MOST:
        raise ValueError("it is not a Mach-O file")
    width = struct.calcsize(layout)
    # The slice says itself which machine it is for: the table may lie.
    places = [
        read_numbers(content, layout, 8 + number * width, "table of machines")[1:]
        for number in range(count)
    ]
    # Parts that share bytes would let a small file take for ever.
    end = 8 + count * width
    for start, size in sorted(places):
        if start < end:
            raise ValueError(f"two of its parts for one machine each share the bytes at {start:#x}")
        end = start + size
    if end > len(content):
        raise ValueError(f"its parts should end at {end:#x}, after the end of the file")
    return [Slice(content, start, size) for start, size in places]


def read(content: Content) -> tuple[LibraryPart, ...]:
    """Return what is in a library, once for each machine.

    Raises ValueError where the file is not a sound Mach-O file, or its tables do not agree with
    each other.
    """
    return tuple(part.read() for part in slices(content))
