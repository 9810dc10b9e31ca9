"""macOS libraries with other load commands: the names of what they need, and where that is.

What Apple's install_name_tool does, on any system and in place. macholib can rename what a library
needs, but neither add where that is looked for nor keep a signature true, and it reads the whole
file, a gigabyte for a TensorFlow.
"""

import hashlib
import mmap
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tfwright.errors import Evidence, WheelError
from tfwright.wheel.binary import macho
from tfwright.wheel.binary.content import numbers, piece
from tfwright.wheel.binary.macho import (
    HEAD,
    ID,
    LOADS,
    RPATH,
    LoadCommand,
    Slice,
    path_of,
    path_start,
)

Writable = bytearray | mmap.mmap
"""The bytes of a library, which are changed in place."""
PREFIX = "@rpath/"

_SIGNATURES, _DIRECTORY, _CERTIFIED = 0xFADE0CC0, 0xFADE0C02, 0xFADE0B01
"""Magics of <cs_blobs.h>: the whole signature, its list of digests, what a certificate adds."""
_EMPTY = 8
"""Bytes of a part that is only a head.

A signature made ad hoc may hold an empty part in the certificate's place.
"""
_LAYOUT = struct.Struct(">4x2I4xI8x2I4B4x")
"""Of the list of digests: length, version, where the digests start, how many there are, how far
they reach; then the bytes of a digest, its kind, the platform, and the page's size as a power of
two."""
_DIGESTS = {1: "sha1", 2: "sha256", 3: "sha256", 4: "sha384"}


@dataclass(frozen=True)
class WantedCommands:
    """What the load commands of a wheel's libraries shall say."""

    libraries: Mapping[str, str] = field(default_factory=dict)
    """Name that the linker wrote, as ``@rpath/libcudart.9.2.dylib`` = name to be there instead."""
    rpath: Sequence[str] = ()
    """Absolute directories that ``@rpath`` stands for, instead of those that the linker wrote."""


def rewrite(content: Writable, wanted: WantedCommands, name: str) -> tuple[str, ...]:
    """Rewrite the library in `content`; return each change once.

    A signature made ad hoc, as the linker makes it for ARM, is made true again. Raises WheelError
    where the new commands have no room, or the library is signed with a certificate; nothing is
    written then. `name` is what errors call it.
    """
    parts = [(part, _renamed(part, wanted)) for part in macho.slices(content)]
    touched = [(part, commands) for part, commands in parts if commands != part.commands]
    # All first: a universal library must not be left with one machine's part rewritten.
    for part, commands in touched:
        _insist(content, part, commands, name)
    changes: list[str] = []
    for part, commands in touched:
        _write(content, part, commands)
        # Last, since the digests cover the header with its new commands.
        _sign(content, part, commands)
        changes += _changes(part, commands)
    # The parts of a universal library mostly change alike.
    return tuple(dict.fromkeys(changes))


def _renamed(part: Slice, wanted: WantedCommands) -> tuple[LoadCommand, ...]:
    """Return the load commands as they shall be; directories only where a name asks for them."""
    commands = []
    for command in part.commands:
        if command.kind in LOADS | {ID}:
            path = wanted.libraries.get(path_of(part, command), "")
            commands.append(_with_path(part, command, path))
        else:
            commands.append(command)
    if not wanted.rpath or not _asks_for_rpath(part, commands):
        return tuple(commands)
    # Those that begin with @loader_path lead to libraries of the wheel itself: they
    # stay.
    kept = [command for command in commands if not _absolute_rpath(part, command)]
    # At the end: the loader searches in the order of the commands, the wheel's own
    # first.
    return (*kept, *(_new_rpath(part, folder) for folder in wanted.rpath))


def _asks_for_rpath(part: Slice, commands: Sequence[LoadCommand]) -> bool:
    loads = (command for command in commands if command.kind in LOADS)
    return any(path_of(part, command).startswith(PREFIX) for command in loads)


def _absolute_rpath(part: Slice, command: LoadCommand) -> bool:
    return command.kind == RPATH and path_of(part, command).startswith("/")


def _with_path(part: Slice, command: LoadCommand, path: str) -> LoadCommand:
    """Return a load command with another path, its other fields as they are.

    Return the same command for no path.
    """
    if not path:
        return command
    fields = command.content[HEAD : path_start(part, command)]
    return LoadCommand(command.kind, _command(part, command.kind, fields, path))


def _new_rpath(part: Slice, folder: str) -> LoadCommand:
    fields = struct.pack(f"{part.order}I", HEAD + struct.calcsize("I"))
    return LoadCommand(RPATH, _command(part, RPATH, fields, folder))


def _command(part: Slice, kind: int, fields: bytes, path: str) -> bytes:
    """Return a load command whose size is the multiple that the loader asks for."""
    text = path.encode("utf-8", "surrogateescape") + b"\0"
    # Eight bytes for every machine: Apple's tools align so, and four would be enough
    # for 32 bits.
    size = -(-(HEAD + len(fields) + len(text)) // 8) * 8
    head = struct.pack(f"{part.order}2I", kind, size)
    return (head + fields + text).ljust(size, b"\0")


def _insist(content: Writable, part: Slice, commands: Sequence[LoadCommand], name: str) -> None:
    """Raise WheelError if the commands cannot be put into the library."""
    size = _size(commands)
    called = f"{name} ({part.machine})"
    # Sections follow: moving them would change every address in the library.
    if size > part.room:
        raise WheelError(
            f"{called} has room for {part.room:,} bytes of load commands, "
            f"and the new ones take {size:,}",
            remedy='Link it with "--linkopt=-Wl,-headerpad_max_install_names" in compile.flags, '
            "or give shorter paths in [package].",
            evidence=Evidence(where=name),
        )
    if any(kind == _CERTIFIED for kind, _, _ in _signature(content, part)):
        raise _certified(name, called)


def _certified(name: str, called: str) -> WheelError:
    # Only the holder of the certificate's key could sign the changed library again.
    return WheelError(
        f"{called} is signed with a certificate, and other load commands would break the signature",
        remedy="Build it unsigned, and sign the wheel's libraries after packaging.",
        evidence=Evidence(where=name),
    )


def _size(commands: Sequence[LoadCommand]) -> int:
    return sum(len(command.content) for command in commands)


def _put(content: Writable, place: int, new: bytes) -> None:
    """Overwrite bytes; the file keeps its length."""
    if place + len(new) > len(content):
        raise ValueError(f"it ends before {place + len(new):#x}, where there should be more")
    content[place : place + len(new)] = new


def _write(content: Writable, part: Slice, commands: Sequence[LoadCommand]) -> None:
    """Put the commands into the header, and zeros where there were more before."""
    block = b"".join(command.content for command in commands)
    sizes = struct.pack(f"{part.order}2I", len(commands), _size(commands))
    _put(content, part.start + 16, sizes)
    _put(content, part.start + part.head, block.ljust(_size(part.commands), b"\0"))


def _sign(content: Writable, part: Slice, commands: Sequence[LoadCommand]) -> None:
    """Make the digests of the pages true that hold the header."""
    end = part.head + max(_size(part.commands), _size(commands))
    for kind, start, size in _signature(content, part):
        if kind == _DIRECTORY:
            directory = piece(content, start, size, "list of digests")
            for place, digest in _digests(content, part, directory, end):
                _put(content, start + place, digest)


def _signature(content: Writable, part: Slice) -> Iterator[tuple[int, int, int]]:
    """Return magic, place in the file and size of each part of a signature that is not empty."""
    for command in part.commands:
        if command.kind != macho.CODE_SIGNATURE:
            continue
        offset, _ = numbers(command.content, f"{part.order}2I", HEAD, "load command")
        start = part.start + offset
        magic, _, count = numbers(content, ">3I", start, "signature")
        # Signatures are big-endian on every machine.
        if magic != _SIGNATURES:
            raise ValueError("its signature is of a kind that is not known")
        # Apple's own signatures have four or five parts.
        index = piece(content, start + 12, 8 * min(count, 64), "signature")
        for (place,) in struct.iter_unpack(">4xI", index):
            kind, size = numbers(content, ">2I", start + place, "signature")
            if size > _EMPTY:
                yield kind, start + place, size


def _digests(
    content: Writable, part: Slice, directory: bytes, end: int
) -> Iterator[tuple[int, bytes]]:
    """Return the digests of the pages before `end`, and where in the list each is."""
    fields = numbers(directory, _LAYOUT.format, 0, "list of digests")
    _, _, first, count, limit, width, kind, _, page = fields
    if kind not in _DIGESTS or not 12 <= page <= 16:  # noqa: PLR2004 pages of 4 to 64 KiB
        raise ValueError("its signature holds digests of a kind that is not known")
    # Only pages with load commands changed; the rest of a gigabyte need not be read.
    for number in range(min(count, -(-end >> page))):
        place = number << page
        # The last page ends where the signature begins.
        size = min(1 << page, limit - place)
        signed = piece(content, part.start + place, size, "page")
        digest = hashlib.new(_DIGESTS[kind], signed).digest()
        # sha256 may be cut to the 20 bytes of sha1, as CS_HASHTYPE_SHA256_TRUNCATED.
        yield first + number * width, digest[:width]


def _changes(part: Slice, commands: Sequence[LoadCommand]) -> Iterator[str]:
    """Say what changed: each name, and the directories as a whole."""
    old_names = _paths(part, part.commands, LOADS | {ID})
    new_names = _paths(part, commands, LOADS | {ID})
    for old, new in zip(old_names, new_names, strict=True):
        if old != new:
            yield f"{old} is now {new}"
    before = _paths(part, part.commands, {RPATH})
    after = _paths(part, commands, {RPATH})
    for folder in after:
        if folder not in before:
            yield f"{PREFIX} is also looked for in {folder}"
    for folder in before:
        if folder not in after:
            yield f"{PREFIX} is not looked for in {folder} any more"


def _paths(part: Slice, commands: Sequence[LoadCommand], kinds: set[int]) -> list[str]:
    return [path_of(part, command) for command in commands if command.kind in kinds]
