"""macOS libraries as their headers lay them out: the load commands as they stand, and where each section lies.

The layout is that of <mach-o/loader.h>. What the commands mean to the user of a library is read in `macho`.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, NamedTuple

from tfwright.wheel.binary import macho

CODE_SIGNATURE = 0x1D
"""LC_CODE_SIGNATURE: offset and size of the signature."""
_SEGMENTS = {0x1: ("8x16s4I8xI4x", "16s16s2II8xI12x"), 0x19: ("8x16s4Q8xI4x", "16s16s2QI12xI12x")}
"""LC_SEGMENT and LC_SEGMENT_64, by how they and their sections are laid out."""
_ZERO_FILLED = {0x1, 0xC, 0x12}
"""S_ZEROFILL and its kin: sections that take no room in the file."""


class LoadCommand(NamedTuple):
    """A load command."""

    kind: int
    content: bytes
    """All of it, its head included."""


class MachOSection(NamedTuple):
    """A section, or a segment that has none; offsets count from where the machine's part starts."""

    name: str
    """As ``__TEXT,__text``; a segment's name alone where it has no sections."""
    address: int
    offset: int
    size: int


@dataclass(frozen=True)
class Slice:
    """One machine's part of a library."""

    start: int
    """Where it starts in the file."""
    size: int
    machine: str
    order: str
    """The byte order, as `struct` writes it."""
    head: int
    """Bytes before the first load command."""
    commands: tuple[LoadCommand, ...]

    @property
    def room(self) -> int:
        """Bytes that the load commands may take: up to the first section."""
        return (
            min([section.offset for section in sections(self) if section.offset], default=self.size)
            - self.head
        )


def slices(stream: IO[bytes]) -> list[Slice]:
    """Read the layout of a library, once for each machine that it is for.

    Raises ValueError or struct.error where the file is no sound Mach-O file.
    """
    whole = stream.seek(0, 2)
    stream.seek(0)
    magic = stream.read(4)
    if magic in macho.THIN:
        return [_slice(stream, 0, whole)]
    layout = macho.UNIVERSAL.get(magic)
    (count,) = struct.unpack(">I", stream.read(4))
    if layout is None or count > macho.MOST:
        raise ValueError("it is no Mach-O file")
    width = struct.calcsize(layout)
    places = [struct.unpack(layout, stream.read(width))[1:] for _ in range(count)]
    return [_slice(stream, start, min(size, whole - start)) for start, size in places]


def _slice(stream: IO[bytes], start: int, size: int) -> Slice:
    """Read one machine's part."""
    stream.seek(start)
    layout = macho.THIN.get(stream.read(4))
    if layout is None:
        raise ValueError(f"at {start:#x} there is no Mach-O file, as its table says")
    machine, _, _, count, length, _ = struct.unpack(layout, stream.read(struct.calcsize(layout)))
    if length > macho.LARGEST:
        raise ValueError(f"its load commands say that they take {length:,} bytes")
    commands = tuple(_commands(stream.read(length), layout[0], count))
    return Slice(
        start,
        size,
        macho.MACHINES.get(machine, f"machine {machine}"),
        layout[0],
        4 + struct.calcsize(layout),
        commands,
    )


def _commands(content: bytes, order: str, count: int) -> Iterator[LoadCommand]:
    """Part the load commands."""
    start = 0
    for _ in range(count):
        kind, size = struct.unpack_from(f"{order}2I", content, start)
        if size < struct.calcsize("2I") or start + size > len(content):
            raise ValueError(
                f"its load command at {start:#x} of {len(content):#x} says that it takes {size:,} bytes"
            )
        yield LoadCommand(kind, content[start : start + size])
        start += size


def sections(part: Slice) -> Iterator[MachOSection]:
    """Return what lies in the file, in the order of the load commands."""
    for kind, content in part.commands:
        if kind in _SEGMENTS:
            yield from _sections(part, kind, content)


def _sections(part: Slice, kind: int, content: bytes) -> Iterator[MachOSection]:
    """Return the sections of a segment that take room in the file; of one without any, such as __LINKEDIT, the segment."""
    segment_layout, section_layout = (f"{part.order}{layout}" for layout in _SEGMENTS[kind])
    name, address, _, offset, size, count = struct.unpack_from(segment_layout, content)
    if not count and size:
        yield MachOSection(_name(name), address, offset, size)
    start, width = struct.calcsize(segment_layout), struct.calcsize(section_layout)
    if start + count * width > len(content):
        raise ValueError(f"its segment {_name(name)} says that it has {count:,} sections")
    for number in range(count):
        own, segment, address, size, offset, flags = struct.unpack_from(
            section_layout, content, start + number * width
        )
        if flags & 0xFF not in _ZERO_FILLED and size:
            yield MachOSection(f"{_name(segment)},{_name(own)}", address, offset, size)


def _name(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "backslashreplace")
