"""macOS libraries with other load commands: under which names the loader looks for what they need, and where.

What Apple's install_name_tool does, on any system and in place. macholib can rename what a library
needs, but neither add where that is looked for nor keep a signature true, and it reads the whole
file, a gigabyte for a TensorFlow.
"""

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from tfwright.errors import Evidence, WheelError
from tfwright.wheel.binary import macho_layout
from tfwright.wheel.binary.macho_layout import LoadCommand, Slice

ID, RPATH = 0xD, 0x8000001C
"""LC_ID_DYLIB and LC_RPATH."""
LOADS = {0xC, 0x80000018, 0x8000001F, 0x20, 0x80000023}
"""LC_LOAD_DYLIB and its weak, re-exporting, lazy and upward kin."""
PREFIX = "@rpath/"
_START = 8
"""Where a command with a path says at which of its bytes the path starts (``lc_str``)."""

_SIGNATURES, _DIRECTORY, _CERTIFIED = 0xFADE0CC0, 0xFADE0C02, 0xFADE0B01
"""Magics of the signature as a whole, of the list of digests in it, and of what a certificate adds (<cs_blobs.h>)."""
_EMPTY = 8
"""Bytes of a part that is only a head: a signature made ad hoc may hold an empty one in the certificate's place."""
_LAYOUT = struct.Struct(">4x2I4xI8x2I4B4x")
"""Of the list of digests: length, version, where the digests start, how many there are, how far they reach; then bytes of
one, which digest, platform, and the page's size as a power of two."""
_DIGESTS = {1: "sha1", 2: "sha256", 3: "sha256", 4: "sha384"}


@dataclass(frozen=True)
class WantedCommands:
    """What the load commands of a wheel's libraries shall say."""

    libraries: Mapping[str, str] = field(default_factory=dict)
    """Name that the linker wrote, as ``@rpath/libcudart.9.2.dylib`` = name to be there instead."""
    rpath: Sequence[str] = ()
    """Absolute directories in which ``@rpath`` is looked for, instead of those that the linker wrote."""


def rewrite(stream: IO[bytes], wanted: WantedCommands, name: str) -> tuple[str, ...]:
    """Rewrite the library in `stream`, which is open for reading and writing; return each change once.

    A signature made ad hoc, as the linker makes it for ARM, is made true again. Raises WheelError
    where the new commands have no room, or the library is signed with a certificate; nothing is
    written then. `name` is what errors call it.
    """
    parts = [(part, _renamed(part, wanted)) for part in macho_layout.slices(stream)]
    touched = [(part, commands) for part, commands in parts if commands != part.commands]
    for part, commands in touched:
        _insist(stream, part, commands, name)
    for part, commands in touched:
        _write(stream, part, commands)
        _sign(stream, part, commands)
    changes = [change for part, commands in touched for change in _changes(part, commands)]
    return tuple(dict.fromkeys(changes))


def _renamed(part: Slice, wanted: WantedCommands) -> tuple[LoadCommand, ...]:
    """Return the load commands as they shall be; directories only where a name asks for them."""
    commands = [
        _with_path(part, one, wanted.libraries.get(path_of(part, one), ""))
        if one.kind in LOADS | {ID}
        else one
        for one in part.commands
    ]
    if not wanted.rpath or not any(
        one.kind in LOADS and path_of(part, one).startswith(PREFIX) for one in commands
    ):
        return tuple(commands)
    kept = [one for one in commands if one.kind != RPATH or not path_of(part, one).startswith("/")]
    return (*kept, *(_new_rpath(part, folder) for folder in wanted.rpath))


def path_of(part: Slice, command: LoadCommand) -> str:
    """Return the path in a load command."""
    (start,) = struct.unpack_from(f"{part.order}I", command.content, _START)
    return command.content[start:].partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _with_path(part: Slice, command: LoadCommand, path: str) -> LoadCommand:
    """Return a load command with another path, its other fields as they are; the same one for no path."""
    if not path:
        return command
    (start,) = struct.unpack_from(f"{part.order}I", command.content, _START)
    return LoadCommand(
        command.kind, _command(part, command.kind, command.content[_START:start], path)
    )


def _new_rpath(part: Slice, folder: str) -> LoadCommand:
    fields = struct.pack(f"{part.order}I", _START + struct.calcsize("I"))
    return LoadCommand(RPATH, _command(part, RPATH, fields, folder))


def _command(part: Slice, kind: int, fields: bytes, path: str) -> bytes:
    """Return a load command whose size is the multiple that the loader asks for."""
    text = path.encode("utf-8", "surrogateescape") + b"\0"
    size = -(-(_START + len(fields) + len(text)) // 8) * 8
    return (struct.pack(f"{part.order}2I", kind, size) + fields + text).ljust(size, b"\0")


def _insist(stream: IO[bytes], part: Slice, commands: Sequence[LoadCommand], name: str) -> None:
    """Raise WheelError if the commands cannot be put into the library."""
    size = _size(commands)
    if size > part.room:
        what = f"{name} ({part.machine}) has room for {part.room:,} bytes of load commands, and the new ones take {size:,}"
        remedy = 'Link it with "--linkopt=-Wl,-headerpad_max_install_names" in compile.flags, or give shorter paths in [package].'
        raise WheelError(what, remedy=remedy, evidence=Evidence(where=name))
    for kind, _, _ in _signature(stream, part):
        if kind == _CERTIFIED:
            what = f"{name} ({part.machine}) is signed with a certificate, which other load commands would make untrue"
            raise WheelError(
                what,
                remedy="Build it unsigned, and sign the wheel's libraries after packaging.",
                evidence=Evidence(where=name),
            )


def _size(commands: Sequence[LoadCommand]) -> int:
    return sum(len(command.content) for command in commands)


def _write(stream: IO[bytes], part: Slice, commands: Sequence[LoadCommand]) -> None:
    """Put the commands into the header, and zeros where there were more before."""
    content = b"".join(command.content for command in commands).ljust(_size(part.commands), b"\0")
    stream.seek(part.start + 16)
    stream.write(struct.pack(f"{part.order}2I", len(commands), _size(commands)))
    stream.seek(part.start + part.head)
    stream.write(content)


def _sign(stream: IO[bytes], part: Slice, commands: Sequence[LoadCommand]) -> None:
    """Make the digests of the pages true that hold the header."""
    end = part.head + max(_size(part.commands), _size(commands))
    for kind, start, size in _signature(stream, part):
        if kind == _DIRECTORY:
            stream.seek(start)
            for place, digest in _digests(stream, part, stream.read(size), end):
                stream.seek(start + place)
                stream.write(digest)


def _signature(stream: IO[bytes], part: Slice) -> Iterator[tuple[int, int, int]]:
    """Return magic, place in the file and size of each part of a signature; a head alone is no part."""
    for command in part.commands:
        if command.kind == macho_layout.CODE_SIGNATURE:
            offset, _ = struct.unpack_from(f"{part.order}2I", command.content, 8)
            start = part.start + offset
            magic, _, count = struct.unpack(">3I", _read(stream, start, 12))
            if magic != _SIGNATURES:
                raise ValueError("its signature is of a kind that is not known")
            index = struct.iter_unpack(">4xI", _read(stream, start + 12, 8 * min(count, 64)))
            parts = [
                (start + offset, *struct.unpack(">2I", _read(stream, start + offset, 8)))
                for (offset,) in index
            ]
            yield from ((magic, place, size) for place, magic, size in parts if size > _EMPTY)


def _digests(
    stream: IO[bytes], part: Slice, directory: bytes, end: int
) -> Iterator[tuple[int, bytes]]:
    """Return the digests of the pages before `end`, and where in the list each stands."""
    _, _, first, count, limit, width, kind, _, page = _LAYOUT.unpack_from(directory)
    if kind not in _DIGESTS or not 12 <= page <= 16:  # noqa: PLR2004 pages of 4 to 64 KiB
        raise ValueError("its signature holds digests of a kind that is not known")
    for number in range(min(count, -(-end >> page))):
        content = _read(
            stream, part.start + (number << page), min(1 << page, limit - (number << page))
        )
        yield first + number * width, hashlib.new(_DIGESTS[kind], content).digest()[:width]


def _read(stream: IO[bytes], place: int, size: int) -> bytes:
    """Read exactly `size` bytes."""
    stream.seek(place)
    content = stream.read(size)
    if len(content) != size:
        raise ValueError(
            f"it ends before {place + size:#x}, where its header says that there is more"
        )
    return content


def _changes(part: Slice, commands: Sequence[LoadCommand]) -> Iterator[str]:
    """Say what changed: names one by one, directories as a whole."""
    before, after = (_paths(part, some, LOADS | {ID}) for some in (part.commands, commands))
    yield from (f"{old} is now {new}" for old, new in zip(before, after, strict=True) if old != new)
    before, after = (_paths(part, some, {RPATH}) for some in (part.commands, commands))
    yield from (
        f"{PREFIX} is also looked for in {folder}" for folder in after if folder not in before
    )
    yield from (
        f"{PREFIX} is no longer looked for in {folder}" for folder in before if folder not in after
    )


def _paths(part: Slice, commands: Sequence[LoadCommand], kinds: set[int]) -> list[str]:
    return [path_of(part, one) for one in commands if one.kind in kinds]
