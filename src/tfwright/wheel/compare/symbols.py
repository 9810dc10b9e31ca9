"""The symbols of a library: exports, sizes of functions, and which function an address is in.

A TensorFlow has a million, whose names alone take 200 MB. So of a name its hash is kept, 64 bits,
and where in the file it stands, to be read when it is shown.
"""

import bisect
import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from typing import NamedTuple

from tfwright.printable import with_rest
from tfwright.wheel.binary import elf_sections, elf_symbols, macho
from tfwright.wheel.binary.content import Content, numbers, piece
from tfwright.wheel.binary.elf_image import ElfHeader
from tfwright.wheel.binary.elf_sections import ElfSection
from tfwright.wheel.binary.macho import Slice
from tfwright.wheel.compare.difference import SHOWN

LONGEST = 64 * 1024
"""Bytes of a name that are read."""
_FUNCTION, _BOUND = 2, (1, 2)
"""STT_FUNC; STB_GLOBAL and STB_WEAK."""


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
        # Signed: Python's hashes are.
        self.keys = array("q")
        self.places = array("Q")
        self.addresses = array("Q")
        self.sizes = array("Q")

    def add(self, row: SymbolRow) -> None:
        """Append a symbol."""
        self.keys.append(row.key)
        self.places.append(row.place)
        self.addresses.append(row.address)
        self.sizes.append(row.size)

    def unique(self) -> dict[int, int]:
        """Return the number of each symbol with a size and a name of its own, by the name's hash.

        Static functions may share a name.
        """
        numbers = dict[int, int]()
        repeated = set[int]()
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

    content: Content
    exports: SymbolTable = field(default_factory=SymbolTable)
    """What others can use."""
    functions: SymbolTable = field(default_factory=SymbolTable)

    def name(self, place: int) -> str:
        """Read the name that stands at a place."""
        end = self.content.find(b"\0", place, place + LONGEST)
        if end < 0:
            end = place + LONGEST
        return bytes(self.content[place:end]).decode("utf-8", "backslashreplace")

    def function_at(self, address: int, start: int) -> str:
        """Name the function that an address is in, of a section that begins at `start`.

        Empty where it is in none.
        """
        number = self.functions.before(address)
        # Code between two sections belongs to no function, although one comes before
        # it.
        if number is None or self.functions.addresses[number] < start:
            return ""
        # A size of 0 (assembly, and all of Mach-O) means: up to the next symbol.
        end = self.functions.addresses[number] + self.functions.sizes[number]
        inside = not self.functions.sizes[number] or address < end
        return self.name(self.functions.places[number]) if inside else ""


def differences(one: LibrarySymbols, two: LibrarySymbols) -> Iterator[str]:
    """Say which exports are in one library only."""
    for side, there, other in (("first", one, two), ("second", two, one)):
        known = set(other.exports.keys)
        rows = zip(there.exports.keys, there.exports.places, strict=True)
        missing = {key: place for key, place in rows if key not in known}
        if missing:
            some = nsmallest(SHOWN, map(there.name, missing.values()))
            names = ", ".join(with_rest(some, len(missing)))
            yield f"exported symbols only in the {side} ({len(missing):,}): {names}"


def resized(one: LibrarySymbols, two: LibrarySymbols) -> Iterator[str]:
    """Name the functions that became longer or shorter, those that did so most first."""
    numbers = two.functions.unique()
    changed = list[_Resized]()
    for key, number in one.functions.unique().items():
        if key in numbers:
            sizes = one.functions.sizes[number], two.functions.sizes[numbers[key]]
            if sizes[0] != sizes[1]:
                changed.append(_Resized(one.functions.places[number], *sizes))
    if not changed:
        return

    def most(function: _Resized) -> tuple[int, str]:
        # The name decides between equals, so that the page is the same each time.
        return -abs(function.before - function.after), one.name(function.place)

    some = [
        f"{one.name(function.place)} ({function.before:,} bytes, then {function.after:,})"
        for function in nsmallest(SHOWN, changed, key=most)
    ]
    yield f"functions of another size ({len(changed):,}): {', '.join(some)}"


class _Resized(NamedTuple):
    """A function that became longer or shorter."""

    place: int
    """Where its name stands in the first library."""
    before: int
    after: int


def of_elf(content: Content, header: ElfHeader, sections: Sequence[ElfSection]) -> LibrarySymbols:
    """Read those of a Linux library; of one that is stripped only what others can use."""
    symbols = LibrarySymbols(content)
    # Of several sections with one name the first counts.
    tables = {section.name: section for section in reversed(sections)}
    full = ".symtab" if ".symtab" in tables else ".dynsym"
    for name in dict.fromkeys((".dynsym", full)):
        for row, kind, exported in _elf(content, header, sections, tables.get(name)):
            if exported and name == ".dynsym":
                symbols.exports.add(row)
            if kind == _FUNCTION and row.address and name == full:
                symbols.functions.add(row)
    return symbols


def _elf(
    content: Content, header: ElfHeader, sections: Sequence[ElfSection], table: ElfSection | None
) -> Iterator[tuple[SymbolRow, int, bool]]:
    """Return each function and each exported symbol, its kind and whether others can use it."""
    if table is None or table.kind == elf_sections.EMPTY or table.link >= len(sections):
        return
    names = sections[table.link]
    layout = struct.Struct(header.order + ("IBxHQQ" if header.wide else "IIIBxH"))
    # A table that is cut off in the middle of a row still has its whole rows.
    whole = table.size // layout.size * layout.size
    rows = piece(content, table.offset, whole, "symbols")
    keys = _Keys(piece(content, names.offset, names.size, "names of symbols"))
    for fields in layout.iter_unpack(rows):
        at, info, section, address, size = fields if header.wide else _as_wide(fields)
        # Section 0 (SHN_UNDEF): the symbol is wanted, and another library has it.
        kind = info & 0xF
        exported = bool(section) and info >> 4 in _BOUND
        if exported or kind == _FUNCTION:
            yield (SymbolRow(keys.of(at), names.offset + at, address, size), kind, exported)


def _as_wide(fields: tuple[int, ...]) -> tuple[int, ...]:
    """Return a symbol's fields in the order that they have where the file has 64 bits."""
    name, address, size, info, section = fields
    return name, info, section, address, size


def of_macho(content: Content, part: Slice) -> LibrarySymbols:
    """Read those of one machine's part of a macOS library, which says no sizes."""
    symbols = LibrarySymbols(content)
    for row, exported in _macho(content, part):
        symbols.functions.add(row)
        if exported:
            symbols.exports.add(row)
    return symbols


def _macho(content: Content, part: Slice) -> Iterator[tuple[SymbolRow, bool]]:
    """Return each symbol that the library has (N_SECT), and whether others can use it (N_EXT)."""
    layout = struct.Struct(f"{part.order}IBBH{'Q' if part.wide else 'I'}")
    # Of several tables the loader uses one; to read all of them could take for ever.
    for command in [command for command in part.commands if command.kind == macho.SYMBOLS][:1]:
        start, count, names, size = numbers(
            command.content, f"{part.order}4I", macho.HEAD, "load command"
        )
        rows = piece(content, part.start + start, count * layout.size, "symbols")
        keys = _Keys(piece(content, part.start + names, size, "names of symbols"))
        for at, flags, _, _, address in layout.iter_unpack(rows):
            if flags & 0xEE == 0xE:  # noqa: PLR2004 in a section, and not for debuggers
                yield (SymbolRow(keys.of(at), part.start + names + at, address, 0), bool(flags & 1))


class _Keys:
    """Hashes of the names in a table, for as long as it is not the same bytes again and again."""

    def __init__(self, texts: bytes) -> None:
        self._texts = texts
        self._left = elf_symbols.OVERLAP * len(texts) + (1 << 20)

    def of(self, start: int) -> int:
        """Return the hash of the name at a place."""
        end = self._texts.find(b"\0", start)
        if end < 0:
            end = len(self._texts)
        name = self._texts[start:end]
        self._left -= len(name)
        if self._left < 0:
            raise ValueError("the names of its symbols are the same bytes many times over")
        return hash(name)
