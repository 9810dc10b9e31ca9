"""macOS libraries as their headers lay them out, thin or universal: load commands and sections.

The layout is that of <mach-o/loader.h>. macholib reads every section into memory to get at the
load commands, a gigabyte for a TensorFlow, so they are read here.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tfwright.wheel.binary.content import Content, numbers, piece
from tfwright.wheel.binary.cpu import Cpu
from tfwright.wheel.binary.elf_symbols import Symbols

THIN = {
    b"\xcf\xfa\xed\xfe": "<6I4x",
    b"\xce\xfa\xed\xfe": "<6I",
    b"\xfe\xed\xfa\xcf": ">6I4x",
    b"\xfe\xed\xfa\xce": ">6I",
}
"""By the first four bytes, the rest of the header: 64 bits, then 32, in both byte orders."""
UNIVERSAL = {b"\xca\xfe\xba\xbe": ">4xIII4x", b"\xca\xfe\xba\xbf": ">4xIQQ8x"}
"""How a slice of a universal file is described: machine's subtype, then offset and size."""
MAGICS = (*THIN, *UNIVERSAL)
MOST = 64
"""Slices that a universal file may have.

Java's classes begin like one, with their version where the number of slices is.
"""
MOST_COMMANDS = 10_000
"""Load commands that a slice may have; a TensorFlow has fewer than a hundred."""
LARGEST = 16 * 1024**2
"""Bytes that the load commands may take."""

MACHINES = {0x01000007: "x86_64", 0x0100000C: "arm64", 7: "i386", 12: "arm", 0x01000012: "ppc64"}
ID, RPATH = 0xD, 0x8000001C
"""LC_ID_DYLIB and LC_RPATH."""
LOADS = {0xC, 0x80000018, 0x8000001F, 0x20, 0x80000023}
"""LC_LOAD_DYLIB and its weak, re-exporting, lazy and upward kin."""
SYMBOLS, UUID, CODE_SIGNATURE = 0x2, 0x1B, 0x1D
"""LC_SYMTAB, LC_UUID, LC_CODE_SIGNATURE."""
_MINIMUM = {0x24: 8, 0x32: 12}
"""LC_VERSION_MIN_MACOSX and its successor LC_BUILD_VERSION: where in them the version stands."""
_SEGMENTS = {0x1: ("8x16s4I8xI4x", "16s16s2II8xI12x"), 0x19: ("8x16s4Q8xI4x", "16s16s2QI12xI12x")}
"""LC_SEGMENT and LC_SEGMENT_64, by how they and their sections are laid out."""
_ZERO_FILLED = {0x1, 0xC, 0x12}
"""S_ZEROFILL and its kin: sections that take no room in the file."""
HEAD = 8
"""Bytes at the start of every load command: its kind and its size. What follows in one with a
path says at which of its bytes the path starts (``lc_str``)."""


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


@dataclass(frozen=True)
class Slice:
    """One machine's part of a library."""

    start: int
    """Where it starts in the file."""
    size: int
    machine: str
    """As ``uname -m`` says it."""
    order: str
    """The byte order, as `struct` writes it."""
    head: int
    """Bytes before the first load command."""
    commands: tuple[LoadCommand, ...]

    @property
    def wide(self) -> bool:
        """Whether it has 64 bits: its header ends with four bytes more."""
        return self.head == 4 + struct.calcsize("<6I4x")

    @property
    def room(self) -> int:
        """Bytes that the load commands may take: up to the first section."""
        # Segments without bytes in the file, as __PAGEZERO, have an offset of 0.
        offsets = [section.offset for section in sections(self) if section.offset]
        return min(offsets, default=self.size) - self.head


@dataclass(frozen=True)
class MachO:
    """What a macOS library says of itself, for one machine."""

    machine: str
    """As ``uname -m`` says it."""
    install_name: str
    """Where others that are linked with it look for it."""
    needed: tuple[str, ...]
    """The libraries that the loader has to find, ``@rpath`` and its kin as they stand."""
    search: tuple[str, ...]
    """What ``@rpath`` stands for."""
    minimum: str
    """The oldest macOS that it says it runs on; empty where it says none."""
    # What follows is in other tables than the load commands; `macho_content` reads it.
    architectures: tuple[str, ...] = ()
    """The GPU code in it, as `elf.Elf` has it."""
    gpu_bytes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of GPU code by architecture, as they are in the file."""
    symbols: Symbols = field(default_factory=Symbols)
    cpu: Cpu | None = None
    """What it needs of an x86-64 CPU; None for other machines."""


def slices(content: Content) -> list[Slice]:
    """Read the layout of a library, once for each machine that it is for.

    Raises ValueError where the file is not a sound Mach-O file.
    """
    magic = bytes(content[:4])
    if magic in THIN:
        return [_slice(content, 0, len(content))]
    layout = UNIVERSAL.get(magic)
    (count,) = numbers(content, ">I", 4, "header")
    # 0xCAFEBABE also begins Java's classes, whose version would be a count of 45 and
    # more.
    if layout is None or not 0 < count <= MOST:
        raise ValueError("it is not a Mach-O file")
    width = struct.calcsize(layout)
    places = []
    for number in range(count):
        entry = numbers(content, layout, 8 + number * width, "table of machines")
        # The slice says itself which machine it is for: the table may lie.
        places.append(entry[1:])
    _refuse_overlap(places, 8 + count * width, len(content))
    return [_slice(content, start, size) for start, size in places]


def _refuse_overlap(places: list[tuple[int, ...]], end: int, whole: int) -> None:
    """Refuse slices that share bytes: read for each of them, a small file would take for ever."""
    for start, size in sorted(places):
        if start < end:
            raise ValueError(f"two of its parts for one machine each share the bytes at {start:#x}")
        end = start + size
    if end > whole:
        raise ValueError(f"its parts should end at {end:#x}, after the end of the file")


def _slice(content: Content, start: int, size: int) -> Slice:
    """Read one machine's part."""
    layout = THIN.get(bytes(content[start : start + 4]))
    if layout is None:
        raise ValueError(f"at {start:#x} there is not a Mach-O file, as its table says")
    machine, _, _, count, length, _ = numbers(content, layout, start + 4, "header")
    head = 4 + struct.calcsize(layout)
    if length > LARGEST or count > MOST_COMMANDS:
        raise ValueError(f"it says that its {count:,} load commands take {length:,} bytes")
    if head + length > size:
        raise ValueError(f"its load commands, {length:,} bytes, do not end before it does")
    block = piece(content, start + head, length, "load commands")
    name = MACHINES.get(machine, f"machine {machine}")
    return Slice(start, size, name, layout[0], head, tuple(_commands(block, layout[0], count)))


def _commands(block: bytes, order: str, count: int) -> Iterator[LoadCommand]:
    """Part the load commands."""
    start = 0
    for _ in range(count):
        kind, size = numbers(block, f"{order}2I", start, "load command")
        if size < HEAD or start + size > len(block):
            raise ValueError(
                f"its load command at {start:#x} of {len(block):#x} "
                f"says that it takes {size:,} bytes"
            )
        yield LoadCommand(kind, block[start : start + size])
        start += size


def path_of(part: Slice, command: LoadCommand) -> str:
    """Return the path in a load command; raise ValueError where it has none, as macOS does."""
    start = path_start(part, command)
    text, end, _ = command.content[start:].partition(b"\0")
    if start < HEAD or not end:
        raise ValueError("the path in one of its load commands goes beyond the command")
    return text.decode("utf-8", "surrogateescape")


def path_start(part: Slice, command: LoadCommand) -> int:
    """Return where the path in a load command says that it begins."""
    what = "load command with a path"
    return numbers(command.content, f"{part.order}I", HEAD, what)[0]


def sections(part: Slice) -> Iterator[MachOSection]:
    """Return what lies in the file, in the order of the load commands."""
    number = 0
    for kind, content in part.commands:
        if kind in _SEGMENTS:
            yield from _sections(part, kind, content, number)
            number += _counted(part, kind, content)


def _counted(part: Slice, kind: int, content: bytes) -> int:
    """Return how many sections a segment says that it has; no more than it has room for."""
    layout, section_layout = (f"{part.order}{layout}" for layout in _SEGMENTS[kind])
    fields = numbers(content, layout, 0, "segment")
    count = fields[-1]
    # A count is a claim: millions of sections would be listed from one small command.
    room = (len(content) - struct.calcsize(layout)) // struct.calcsize(section_layout)
    if count > room:
        raise ValueError(f"one of its segments says that it has {count:,} sections")
    return count


def _sections(part: Slice, kind: int, content: bytes, number: int) -> Iterator[MachOSection]:
    """Return the sections of a segment that take room in the file.

    Of a segment without sections, such as __LINKEDIT, the segment itself.
    """
    layout, section_layout = (f"{part.order}{layout}" for layout in _SEGMENTS[kind])
    count = _counted(part, kind, content)
    name, address, _, offset, size, _ = struct.unpack_from(layout, content)
    if not count and size:
        yield MachOSection(_name(name), address, offset, size, 0)
    start, width = struct.calcsize(layout), struct.calcsize(section_layout)
    for place in range(start, start + count * width, width):
        number += 1
        own, segment, address, size, offset, flags = struct.unpack_from(
            section_layout, content, place
        )
        # The lower byte of the flags is the section's type.
        if flags & 0xFF not in _ZERO_FILLED and size:
            called = f"{_name(segment)},{_name(own)}"
            yield MachOSection(called, address, offset, size, number)


def _name(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "backslashreplace")


def read(content: Content) -> tuple[MachO, ...]:
    """Return what the load commands of a library say, once for each machine.

    Raises ValueError where the file is not a sound Mach-O file.
    """
    return tuple(said(part) for part in slices(content))


def said(part: Slice) -> MachO:
    """Return what the load commands of one machine's part say."""
    commands = [command for command in part.commands if command.kind in _MINIMUM]
    minimums = [_minimum(part, command) for command in commands]
    names = _paths(part, {ID})
    return MachO(
        machine=part.machine,
        install_name=names[0] if names else "",
        needed=_paths(part, LOADS),
        search=_paths(part, {RPATH}),
        minimum=_dotted(max(minimums)) if minimums else "",
    )


def _paths(part: Slice, kinds: set[int]) -> tuple[str, ...]:
    """Return the paths in load commands of some kinds, fit to be shown."""
    return tuple(
        _printable(path_of(part, command)) for command in part.commands if command.kind in kinds
    )


def _printable(path: str) -> str:
    # What is not UTF-8 was kept for writing it back; JSON and terminals take no half
    # characters.
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _minimum(part: Slice, command: LoadCommand) -> int:
    """Return the oldest macOS as the number in a load command; of several the newest holds."""
    place = _MINIMUM[command.kind]
    return numbers(command.content, f"{part.order}I", place, "load command")[0]


def _dotted(word: int) -> str:
    """Return the three numbers of a version that share a word."""
    major = word >> 16
    minor = word >> 8 & 0xFF
    patch = word & 0xFF
    return f"{major}.{minor}" + (f".{patch}" if patch else "")
