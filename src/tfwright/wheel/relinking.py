"""A wheel whose macOS libraries look for other libraries, or elsewhere, than the linker wrote.

Its RECORD follows the change. In a library this is what Apple's install_name_tool does, on any
system and in place. macholib can rename what a library needs, but neither add where that is looked
for nor keep a signature true, and it reads the whole file, a gigabyte for a TensorFlow; lief keeps
the signature of the bytes before the change.
"""

import hashlib
import mmap
import shutil
import struct
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO

from tfwright.errors import WheelError
from tfwright.wheel import archive, rewriting
from tfwright.wheel.binary import macho
from tfwright.wheel.binary.elf_image import numbers, piece
from tfwright.wheel.binary.macho import HEAD, ID, LOADS, RPATH, LoadCommand, Slice

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


def relink(wheel: zipfile.ZipFile, target: IO[bytes], wanted: WantedCommands) -> Counter[str]:
    """Write `wheel` to `target` as `wanted`.

    Return each change with the number of libraries that it was made in.

    Raises WheelError as `rewrite` does, and for a library that is not a sound Mach-O file.
    """
    changes = Counter[str]()
    changed: dict[str, mmap.mmap] = {}
    with ExitStack() as held:
        for member in archive.files(wheel):
            with wheel.open(member) as source:
                # Java's classes begin like libraries.
                if source.read(4) not in macho.MAGICS or member.filename.endswith(".class"):
                    continue
            # zipfile's own streams cannot be written to in the middle.
            copy = held.enter_context(tempfile.TemporaryFile())
            with wheel.open(member) as source:
                shutil.copyfileobj(source, copy, archive.CHUNK)
            # The map reads the file, not what Python still holds in its buffer.
            copy.flush()
            # Mapped: a library of a gigabyte is not read to change some hundred bytes.
            content = held.enter_context(mmap.mmap(copy.fileno(), 0))
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
            else:
                # Only changed copies have to stay on the disk until all are written.
                content.close()
                copy.close()
        rewriting.rewrite(wheel, target, changed)
    return changes


def rewrite(content: Writable, wanted: WantedCommands, name: str) -> tuple[str, ...]:
    """Rewrite the library in `content`; return each change once.

    A signature made ad hoc, as the linker makes it for ARM, is made true again. Raises WheelError
    where the new commands have no room, or the library is signed with a certificate; nothing is
    written then. `name` is what errors call it.
    """
    parts = [Rewriting(content, part, wanted) for part in macho.slices(content)]
    touched = [part for part in parts if part.new != part.slice.commands]
    # All first: a universal library must not be left with one machine's part rewritten.
    for part in touched:
        part.insist(name)
    for part in touched:
        part.write()
        # Last, since the digests cover the header with its new commands.
        part.sign()
    # The parts of a universal library mostly change alike.
    return tuple(dict.fromkeys(change for part in touched for change in part.changes()))


class Rewriting:
    """One machine's part of a library, and the load commands that it gets."""

    def __init__(self, content: Writable, part: Slice, wanted: WantedCommands) -> None:
        """Make the new load commands; nothing is written."""
        self.content = content
        self.slice = part
        self.new = self._wanted(wanted)

    def _wanted(self, wanted: WantedCommands) -> tuple[LoadCommand, ...]:
        part = self.slice
        commands = []
        for command in part.commands:
            named = command.kind in LOADS | {ID}
            path = wanted.libraries.get(part.path(command), "") if named else ""
            if path:
                # Its other fields, such as versions, stay.
                fields = command.content[HEAD : part.path_start(command)]
                commands.append(self._command(command.kind, fields, path))
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
        fields = struct.pack(f"{part.order}I", HEAD + struct.calcsize("I"))
        # At the end: the loader searches in the order of the commands, the wheel's own first.
        return (*kept, *(self._command(RPATH, fields, folder) for folder in wanted.rpath))

    def _command(self, kind: int, fields: bytes, path: str) -> LoadCommand:
        """Return a load command whose size is the multiple that the loader asks for."""
        body = fields + path.encode("utf-8", "surrogateescape") + b"\0"
        # Eight bytes for every machine: Apple's tools align so; four would do for 32 bits.
        size = -(-(HEAD + len(body)) // 8) * 8
        head = struct.pack(f"{self.slice.order}2I", kind, size)
        return LoadCommand(kind, (head + body).ljust(size, b"\0"))

    @property
    def block(self) -> bytes:
        """The new load commands, and zeros where there were more before."""
        before = sum(len(command.content) for command in self.slice.commands)
        return self._packed.ljust(before, b"\0")

    @property
    def _packed(self) -> bytes:
        return b"".join(command.content for command in self.new)

    def insist(self, name: str) -> None:
        """Raise WheelError if the commands cannot be put into the library."""
        size, space = len(self._packed), self.slice.space
        called = f"{name} ({self.slice.machine})"
        # Sections follow: moving them would change every address in the library.
        if size > space:
            raise WheelError(
                f"{called} has room for {space:,} bytes of load commands, "
                f"and the new ones take {size:,}",
                remedy='Link it with "--linkopt=-Wl,-headerpad_max_install_names" in '
                "compile.flags, or give shorter paths in [package].",
                where=name,
            )
        if any(kind == _CERTIFIED for kind, _, _ in self._signature()):
            # Only the holder of the certificate's key could sign the changed library again.
            raise WheelError(
                f"{called} is signed with a certificate, and other load commands would break the "
                "signature",
                remedy="Build it unsigned, and sign the wheel's libraries after packaging.",
                where=name,
            )

    def _put(self, place: int, new: bytes) -> None:
        """Overwrite bytes; the file keeps its length."""
        if place + len(new) > len(self.content):
            raise ValueError(f"it ends before {place + len(new):#x}, where there should be more")
        self.content[place : place + len(new)] = new

    def write(self) -> None:
        """Put the commands into the header."""
        sizes = struct.pack(f"{self.slice.order}2I", len(self.new), len(self._packed))
        self._put(self.slice.start + 16, sizes)
        self._put(self.slice.start + self.slice.head, self.block)

    def sign(self) -> None:
        """Make the digests of the pages true that hold the header."""
        end = self.slice.head + len(self.block)
        for kind, start, _ in self._signature():
            if kind != _DIRECTORY:
                continue
            fields = numbers(self.content, _LAYOUT.format, start, "list of digests")
            _, _, first, count, limit, width, digest, _, page = fields
            if digest not in _DIGESTS or not 12 <= page <= 16:  # noqa: PLR2004 4 to 64 KiB
                raise ValueError("its signature holds digests of a kind that is not known")
            # Only pages with load commands changed; the rest of a gigabyte need not be read.
            for number in range(min(count, -(-end >> page))):
                place = number << page
                # The last page ends where the signature begins.
                bytes_ = min(1 << page, limit - place)
                signed = piece(self.content, self.slice.start + place, bytes_, "page")
                made = hashlib.new(_DIGESTS[digest], signed).digest()
                # sha256 may be cut to the 20 bytes of sha1, as CS_HASHTYPE_SHA256_TRUNCATED.
                self._put(start + first + number * width, made[:width])

    def _signature(self) -> Iterator[tuple[int, int, int]]:
        """Return magic, place and size of each part of a signature that is not empty."""
        part, content = self.slice, self.content
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

    def changes(self) -> Iterator[str]:
        """Say what changed: each name, and the directories as a whole."""

        def paths(commands: Sequence[LoadCommand], kinds: set[int]) -> list[str]:
            return [self.slice.path(command) for command in commands if command.kind in kinds]

        old, new = self.slice.commands, self.new
        names = LOADS | {ID}
        for before, after in zip(paths(old, names), paths(new, names), strict=True):
            if before != after:
                yield f"{before} is now {after}"
        gone, come = paths(old, {RPATH}), paths(new, {RPATH})
        for folder in come:
            if folder not in gone:
                yield f"{PREFIX} is also looked for in {folder}"
        for folder in gone:
            if folder not in come:
                yield f"{PREFIX} is not looked for in {folder} any more"
