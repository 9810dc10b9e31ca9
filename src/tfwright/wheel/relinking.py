"""A wheel whose macOS libraries look for other libraries, or elsewhere, than the linker wrote.

Its RECORD follows the change. In a library this is what Apple's install_name_tool does, on any
system and in place. macholib can rename what a library needs, but neither add where that is looked
for nor keep a signature true, and it reads the whole file, a gigabyte for a TensorFlow; lief keeps
the signature of the bytes before the change.
"""

import hashlib
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from tfwright.errors import WheelError
from tfwright.wheel import archive, rewriting
from tfwright.wheel.binary import macho
from tfwright.wheel.binary.elf_image import read_bytes, read_numbers
from tfwright.wheel.binary.macho import HEAD, ID, LOADS, RPATH, LoadCommand, Slice

PREFIX = "@rpath/"

_SIGNATURES, _DIRECTORY, _CERTIFIED = 0xFADE0CC0, 0xFADE0C02, 0xFADE0B01
"""Magics of <cs_blobs.h>: the whole signature, its list of digests, what a certificate adds."""
_EMPTY = 8
"""Bytes of a part that is only a head.

A signature made ad hoc may hold an empty part in the certificate's place.
"""
_LAYOUT = ">4x2I4xI8x2I4B4x"
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


def relink(wheel: zipfile.ZipFile, target: IO[bytes], wanted: WantedCommands) -> Counter[str]:
    """Write `wheel` to `target` as `wanted`.

    Return each change with the number of libraries that it was made in.

    Raises WheelError as `rewrite` does, and for a library that is not a sound Mach-O file.
    """
    changes = Counter[str]()
    changed: dict[str, bytearray] = {}
    for member in archive.files(wheel):
        with wheel.open(member) as source:
            # Java's classes begin like libraries.
            if source.read(4) not in macho.MAGICS or member.filename.endswith(".class"):
                continue
        content = bytearray(wheel.read(member))
        try:
            made = rewrite(content, wanted, member.filename)
        except (ValueError, struct.error, OverflowError) as fault:
            raise WheelError(
                f"{member.filename} cannot be relinked: {fault}",
                remedy="Correct by a patch how this library is made: it is not a sound one.",
                where=member.filename,
            ) from fault
        changes.update(made)
        if made:
            changed[member.filename] = content
    rewriting.rewrite(wheel, target, changed)
    return changes


def rewrite(content: bytearray, wanted: WantedCommands, name: str) -> tuple[str, ...]:
    """Rewrite the library in `content`; return each change once.

    A signature made ad hoc, as the linker makes it for ARM, is made true again. Raises WheelError
    where the new commands have no room, or the library is signed with a certificate; nothing is
    written then. `name` is what errors call it.
    """
    parts = [(part, _new_commands(part, wanted)) for part in macho.slices(content)]
    touched = [(part, new) for part, new in parts if new != part.commands]
    # All first: a universal library must not be left with one machine's part rewritten.
    for part, new in touched:
        _check_commands(content, part, new, name)
    for part, new in touched:
        packed = _join_commands(new)
        # Zeros where there were more before.
        block = packed.ljust(len(_join_commands(part.commands)), b"\0")
        _overwrite(content, part.start + 16, struct.pack("<2I", len(new), len(packed)))
        _overwrite(content, part.start + macho.LENGTH, block)
        # Last, since the digests cover the header with its new commands.
        _sign(content, part, macho.LENGTH + len(block))
    # The parts of a universal library mostly change alike.
    return tuple(dict.fromkeys(change for part, new in touched for change in _changes(part, new)))


def _new_commands(part: Slice, wanted: WantedCommands) -> tuple[LoadCommand, ...]:
    """Return the load commands that one machine's part of a library gets."""
    commands = []
    for command in part.commands:
        named = command.kind in LOADS | {ID}
        path = wanted.libraries.get(part.path(command), "") if named else ""
        if path:
            # Its other fields, such as versions, stay.
            fields = command.content[HEAD : part.path_start(command)]
            commands.append(_command(command.kind, fields, path))
        else:
            commands.append(command)
    loaded = [part.path(command) for command in commands if command.kind in LOADS]
    if not wanted.rpath or not any(path.startswith(PREFIX) for path in loaded):
        return tuple(commands)
    # Those that begin with @loader_path lead to libraries of the wheel itself: they stay.
    kept = [
        command
        for command in commands
        if command.kind != RPATH or not part.path(command).startswith("/")
    ]
    fields = struct.pack("<I", HEAD + 4)
    # At the end: the loader searches in the order of the commands, the wheel's own first.
    return (*kept, *(_command(RPATH, fields, folder) for folder in wanted.rpath))


def _command(kind: int, fields: bytes, path: str) -> LoadCommand:
    """Return a load command whose size is the multiple that the loader asks for."""
    body = fields + path.encode("utf-8", "surrogateescape") + b"\0"
    size = -(-(HEAD + len(body)) // 8) * 8
    head = struct.pack("<2I", kind, size)
    return LoadCommand(kind, (head + body).ljust(size, b"\0"))


def _join_commands(commands: Sequence[LoadCommand]) -> bytes:
    return b"".join(command.content for command in commands)


def _check_commands(content: bytearray, part: Slice, new: Sequence[LoadCommand], name: str) -> None:
    """Raise WheelError if the commands cannot be put into the library."""
    size, called = len(_join_commands(new)), f"{name} ({part.machine})"
    # Sections follow: moving them would change every address in the library.
    if size > part.space:
        raise WheelError(
            f"{called} has room for {part.space:,} bytes of load commands, "
            f"and the new ones take {size:,}",
            remedy='Link it with "--linkopt=-Wl,-headerpad_max_install_names" in '
            "compile.flags, or give shorter paths in [package].",
            where=name,
        )
    if any(kind == _CERTIFIED for kind, _ in _signature(content, part)):
        # Only the holder of the certificate's key could sign the changed library again.
        raise WheelError(
            f"{called} is signed with a certificate, and other load commands would break the "
            "signature",
            remedy="Build it unsigned, and sign the wheel's libraries after packaging.",
            where=name,
        )


def _signature(content: bytearray, part: Slice) -> Iterator[tuple[int, int]]:
    """Return magic and place of each part of a signature that is not empty."""
    for command in part.commands:
        if command.kind != macho.CODE_SIGNATURE:
            continue
        offset, _ = read_numbers(command.content, "<2I", HEAD, "load command")
        start = part.start + offset
        magic, _, count = read_numbers(content, ">3I", start, "signature")
        # Signatures are big-endian on every machine.
        if magic != _SIGNATURES:
            raise ValueError("its signature is of a kind that is not known")
        # Apple's own signatures have four or five parts.
        index = read_bytes(content, start + 12, 8 * min(count, 64), "signature")
        for (place,) in struct.iter_unpack(">4xI", index):
            kind, size = read_numbers(content, ">2I", start + place, "signature")
            if size > _EMPTY:
                yield kind, start + place


def _sign(content: bytearray, part: Slice, end: int) -> None:
    """Make the digests of the pages true that hold the header, which ends there."""
    for kind, start in _signature(content, part):
        if kind != _DIRECTORY:
            continue
        fields = read_numbers(content, _LAYOUT, start, "list of digests")
        _, _, first, count, limit, width, digest, _, page = fields
        if digest not in _DIGESTS or not 12 <= page <= 16:  # noqa: PLR2004 4 to 64 KiB
            raise ValueError("its signature holds digests of a kind that is not known")
        # Only pages with load commands changed; the rest of a gigabyte need not be read.
        for number in range(min(count, -(-end >> page))):
            place = number << page
            # The last page ends where the signature begins.
            signed = read_bytes(content, part.start + place, min(1 << page, limit - place), "page")
            made = hashlib.new(_DIGESTS[digest], signed).digest()
            # sha256 may be cut to the 20 bytes of sha1, as CS_HASHTYPE_SHA256_TRUNCATED.
            _overwrite(content, start + first + number * width, made[:width])


def _overwrite(content: bytearray, place: int, new: bytes) -> None:
    """Overwrite bytes; the file keeps its length."""
    if place + len(new) > len(content):
        raise ValueError(f"it ends before {place + len(new):#x}, where there should be more")
    content[place : place + len(new)] = new


def _changes(part: Slice, new: Sequence[LoadCommand]) -> Iterator[str]:
    """Say what changed: each name, and the directories as a whole."""

    def paths(commands: Sequence[LoadCommand], kinds: set[int]) -> list[str]:
        return [part.path(command) for command in commands if command.kind in kinds]

    names = LOADS | {ID}
    for before, after in zip(paths(part.commands, names), paths(new, names), strict=True):
        if before != after:
            yield f"{before} is now {after}"
    gone, come = paths(part.commands, {RPATH}), paths(new, {RPATH})
    for folder in come:
        if folder not in gone:
            yield f"{PREFIX} is also looked for in {folder}"
    for folder in gone:
        if folder not in come:
            yield f"{PREFIX} is not looked for in {folder} any more"
