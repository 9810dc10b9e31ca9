"""The symbols of a library: which others can use, how large its functions are, and in which one a place of the code is.

A TensorFlow has a million, whose names alone take 200 MB. So of a name its hash is kept, 64 bits, and where in the
file it stands, to be read when it is shown.
"""

import bisect
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from typing import IO, TYPE_CHECKING, NamedTuple

from tfwright.wheel.binary import macho_layout
from tfwright.wheel.compare.difference import SHOWN, counted

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

LARGEST = 512 * 1024**2
"""Bytes of a table of symbols, or of their names."""
LONGEST = 64 * 1024
"""Bytes of a name that are read."""
_FUNCTION, _BOUND = 2, (1, 2)
"""STT_FUNC; STB_GLOBAL and STB_WEAK."""
_SYMBOLS = 0x2
"""LC_SYMTAB."""


class SymbolRow(NamedTuple):
    """A symbol."""

    key: int
    """The hash of its name."""
    place: int
    """Where its name stands in the file."""
    address: int
    size: int
    """Bytes; 0 where that is not known."""


class SymbolTable:
    """Symbols, in 32 bytes each."""

    def __init__(self) -> None:
        """Begin empty."""
        self.keys, self.places, self.addresses, self.sizes = (
            array("q"),
            array("Q"),
            array("Q"),
            array("Q"),
        )

    def add(self, row: SymbolRow) -> None:
        """Append a symbol."""
        for column, value in zip(
            (self.keys, self.places, self.addresses, self.sizes), row, strict=True
        ):
            column.append(value)

    def unique(self) -> dict[int, int]:
        """Return the number of each symbol that has a size and whose name no other one has, as static functions may, by its name's hash."""
        numbers, repeated = dict[int, int](), set[int]()
        for number, key in enumerate(self.keys):
            if numbers.setdefault(key, number) != number:
                repeated.add(key)
        return {
            key: number
            for key, number in numbers.items()
            if key not in repeated and self.sizes[number]
        }

    def before(self, address: int) -> int | None:
        """Return the number of the last symbol that begins at an address or before it."""
        place = bisect.bisect_right(self._ascending, address, key=self.addresses.__getitem__)
        return self._ascending[place - 1] if place else None

    @cached_property
    def _ascending(self) -> "array[int]":
        return array("Q", sorted(range(len(self.addresses)), key=self.addresses.__getitem__))


@dataclass(frozen=True)
class LibrarySymbols:
    """Those of one library."""

    stream: IO[bytes]
    exports: SymbolTable = field(default_factory=SymbolTable)
    """What others can use."""
    functions: SymbolTable = field(default_factory=SymbolTable)

    def name(self, place: int) -> str:
        """Read the name that stands at a place."""
        self.stream.seek(place)
        name, end = b"", b""
        while not end and len(name) < LONGEST and (part := self.stream.read(512)):
            head, end, _ = part.partition(b"\0")
            name += head
        return name.decode("utf-8", "backslashreplace")

    def function_at(self, address: int, start: int) -> str:
        """Name the function that an address is in, of a section that begins at `start`; empty where that is none."""
        number = self.functions.before(address)
        if number is None or self.functions.addresses[number] < start:
            return ""
        end = self.functions.addresses[number] + self.functions.sizes[number]
        inside = not self.functions.sizes[number] or address < end
        return self.name(self.functions.places[number]) if inside else ""


def differences(one: LibrarySymbols, two: LibrarySymbols) -> Iterator[str]:
    """Say which exports are in one library only."""
    for side, there, other in (("first", one, two), ("second", two, one)):
        known = set(other.exports.keys)
        missing = {
            key: place
            for key, place in zip(there.exports.keys, there.exports.places, strict=True)
            if key not in known
        }
        if missing:
            some = nsmallest(SHOWN, map(there.name, missing.values()))
            yield f"exported symbols only in the {side} ({len(missing):,}): {', '.join(counted(some, len(missing)))}"


def resized(one: LibrarySymbols, two: LibrarySymbols) -> Iterator[str]:
    """Name the functions that became longer or shorter, those that did so most first."""
    before, after, numbers = one.functions, two.functions, two.functions.unique()
    pairs = ((number, numbers[key]) for key, number in before.unique().items() if key in numbers)
    changed = [pair for pair in pairs if before.sizes[pair[0]] != after.sizes[pair[1]]]

    def most(pair: tuple[int, int]) -> tuple[int, str]:
        return -abs(before.sizes[pair[0]] - after.sizes[pair[1]]), one.name(before.places[pair[0]])

    some = [
        f"{one.name(before.places[old])} ({before.sizes[old]:,} bytes, then {after.sizes[new]:,})"
        for old, new in nsmallest(SHOWN, changed, key=most)
    ]
    if changed:
        yield f"functions of another size ({len(changed):,}): {', '.join(some)}"


def of_elf(stream: IO[bytes], file: "ELFFile") -> LibrarySymbols:
    """Read those of a Linux library; of one that is stripped only what others can use."""
    symbols = LibrarySymbols(stream)
    full = ".symtab" if file.get_section_by_name(".symtab") else ".dynsym"
    for table in dict.fromkeys((".dynsym", full)):
        for row, kind, exported in _elf(stream, file, table):
            if exported and table == ".dynsym":
                symbols.exports.add(row)
            if kind == _FUNCTION and row.address and table == full:
                symbols.functions.add(row)
    return symbols


def _elf(stream: IO[bytes], file: "ELFFile", name: str) -> Iterator[tuple[SymbolRow, int, bool]]:
    """Return each function and each other symbol that others can use, its kind and whether they can; pyelftools takes minutes for a TensorFlow's."""
    table = file.get_section_by_name(name)
    names = file.get_section(table["sh_link"]) if table else None
    if table is None or names is None:
        return
    order, wide = "<" if file.little_endian else ">", file.elfclass == 64  # noqa: PLR2004 bits
    layout = struct.Struct(f"{order}IBxHQQ" if wide else f"{order}IIIBxH")
    content, texts = (
        table_at(stream, part["sh_offset"], part["sh_size"]) for part in (table, names)
    )
    for fields in layout.iter_unpack(content[: len(content) // layout.size * layout.size]):
        at, info, section, address, size = (
            fields if wide else (fields[0], fields[3], fields[4], fields[1], fields[2])
        )
        kind, exported = info & 0xF, bool(section) and info >> 4 in _BOUND
        if exported or kind == _FUNCTION:
            yield SymbolRow(_key(texts, at), names["sh_offset"] + at, address, size), kind, exported


def of_macho(stream: IO[bytes], part: macho_layout.Slice) -> LibrarySymbols:
    """Read those of one machine's part of a macOS library, which says no sizes."""
    symbols = LibrarySymbols(stream)
    for row, exported in _macho(stream, part):
        symbols.functions.add(row)
        if exported:
            symbols.exports.add(row)
    return symbols


def _macho(stream: IO[bytes], part: macho_layout.Slice) -> Iterator[tuple[SymbolRow, bool]]:
    """Return each symbol that the library has (N_SECT), and whether others can use it (N_EXT)."""
    layout = struct.Struct(f"{part.order}IBBH{'Q' if part.head == 32 else 'I'}")  # noqa: PLR2004 bytes before the load commands
    for kind, content in part.commands:
        if kind == _SYMBOLS:
            start, count, names, size = struct.unpack_from(f"{part.order}4I", content, 8)
            table = table_at(stream, part.start + start, count * layout.size)
            texts = table_at(stream, part.start + names, size)
            for at, flags, _, _, address in layout.iter_unpack(
                table[: len(table) // layout.size * layout.size]
            ):
                if flags & 0xEE == 0xE:  # noqa: PLR2004 in a section, and no debugger's
                    yield (
                        SymbolRow(_key(texts, at), part.start + names + at, address, 0),
                        bool(flags & 1),
                    )


def _key(texts: bytes, start: int) -> int:
    end = texts.find(b"\0", start)
    return hash(texts[start : end if end >= 0 else None])


def table_at(stream: IO[bytes], offset: int, size: int) -> bytes:
    """Return what is in a stretch of a file, whose size is the file's own claim."""
    if size > LARGEST:
        raise ValueError(f"one of its tables says that it has {size:,} bytes")
    stream.seek(offset)
    return stream.read(size)
