"""Symbols of a Linux library: what it gives to others, and what it has to find in them."""

import re
import struct
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from tfwright.wheel.binary import elf_image
from tfwright.wheel.binary.content import piece
from tfwright.wheel.binary.elf_image import ElfImage

MOST_MISSING = 20
"""Of the names that a library misses, how many are kept."""
TENSORFLOW = b"10tensorflow"
"""The namespace in a mangled name; what operations of users' own are linked with."""
REGISTRY = b"OpDefBuilder"
"""In the name of every function that TensorFlow's REGISTER_OP calls, in all releases."""
KERNELS = b"OpKernelRegistrar"
"""The same for REGISTER_KERNEL_BUILDER."""
STRINGS = {"cxx11": b"7__cxx1112basic_string", "before cxx11": b"RKSs"}
"""In the mangled names of functions with a std::string. The two kinds cannot call each other."""
STANDARD = (b"_ZNSt", b"_ZNKSt", b"_ZSt", b"_ZGTtNSt", b"_ZT")
"""How names of the standard library's own begin.

gcc's static half of it brings both kinds of strings into whatever it is linked into.
"""
OVERLAP = 8
"""How often the bytes of the table of names may be used.

Linkers let a name be the end of a longer one, so a byte may serve twice. A table in which every
symbol's name is the whole table would keep its reader busy for hours.
"""
_PYTHON = re.compile(rb"_?Py[A-Z_]")
_NAMELESS_VERSIONS = 2
"""The first number in the table of versions that stands for a version with a name."""
_WEAK = 2
_ROWS = {True: ("IBBHQQ", 24), False: ("IIIBBH", 16)}
"""How a symbol is laid out, and its bytes, by whether the file has 64 bits."""
_RELOCATIONS = ((7, 8), (17, 18), (23, 2))
"""Address and bytes of each table of relocations: DT_RELA, DT_REL, DT_JMPREL with DT_PLTRELSZ."""
_RELOCATIONS_KIND, _WITH_ADDEND = 20, 7
"""DT_PLTREL, and its value DT_RELA."""


@dataclass(frozen=True)
class Symbols:
    """What matters of a library's dynamic symbols to whoever links or loads it."""

    exports: int = 0
    """How many it gives to others."""
    tensorflow: int = 0
    """How many of these are in TensorFlow's namespace: what operations of users' own need."""
    registers_ops: bool = False
    """Whether it registers operations, or has what registers them."""
    registers_kernels: bool = False
    """The same of kernels, without which operations cannot run."""
    strings: tuple[str, ...] = ()
    """The std::string of its interface: ``cxx11``, ``before cxx11``, both or none."""
    missing: tuple[str, ...] = ()
    """What it needs and no library in its reach provides; the first `MOST_MISSING`."""


@dataclass(frozen=True)
class ElfTable:
    """The symbols of one library, until all libraries of the wheel have been read."""

    symbols: Symbols
    given: frozenset[int]
    """Hashes of the names, which take 100 MB as text."""
    wanted: tuple[bytes, ...]
    """Without a version, not weak, and not Python's."""


def read(image: ElfImage) -> ElfTable:
    """Read the dynamic symbols. Raises ValueError where the tables do not agree with each other."""
    names = _names(image)
    versions = _versions(image)
    given, wanted, tensorflow = set[int](), [], 0
    # What the whole table of names does not hold, no symbol has: most libraries end
    # here.
    unseen = {kind: part for kind, part in STRINGS.items() if part in names}
    found = set[str]()
    for number, (name, weak, here) in enumerate(_named(image, names)):
        if here:
            given.add(hash(name))
            tensorflow += TENSORFLOW in name
        elif not name or _versioned(versions, number):
            # A version names the library that has the symbol: the loader checks that by
            # itself.
            continue
        elif not weak and not _PYTHON.match(name):
            # A weak symbol may stay undefined; Python's own are in the interpreter.
            wanted.append(name)
        if unseen and not name.startswith(STANDARD):
            present = {kind for kind, part in unseen.items() if part in name}
            if present:
                found |= present
                unseen = {kind: part for kind, part in unseen.items() if kind not in found}
    symbols = Symbols(
        exports=len(given),
        tensorflow=tensorflow,
        registers_ops=REGISTRY in names,
        registers_kernels=KERNELS in names,
        strings=tuple(kind for kind in STRINGS if kind in found),
    )
    return ElfTable(symbols, frozenset(given), tuple(wanted))


def _named(image: ElfImage, names: bytes) -> Iterator[tuple[bytes, bool, bool]]:
    """Return each symbol's name, whether it is weak, and whether the library has it itself."""
    allowed = OVERLAP * len(names) + (1 << 20)
    for place, weak, here in _rows(image):
        end = names.find(b"\0", place)
        if end < 0:
            raise ValueError(f"the name of a symbol, {place:#x}, is outside its table of names")
        allowed -= end - place
        if allowed < 0:
            raise ValueError("the names of its symbols are the same bytes many times over")
        yield names[place:end], weak, here


def _names(image: ElfImage) -> bytes:
    """Return the table of names: all of it that its segment has, since the loader knows no end."""
    address = image.value(elf_image.STRINGS)
    if address is None:
        return b""
    start, end = image.place(address)
    said = image.value(elf_image.STRINGS_SIZE)
    # DT_STRSZ is a claim: a name that begins inside may end where the segment does.
    size = end - start if said is None else min(said, end - start)
    return piece(image.content, start, size, "table of names")


def _rows(image: ElfImage) -> Iterator[tuple[int, bool, bool]]:
    """Return where each name stands, whether the symbol is weak, and whether it is defined here."""
    content = table(image)
    layout = image.header.order + _ROWS[image.header.wide][0]
    if image.header.wide:
        for name, info, _, index, _, _ in struct.iter_unpack(layout, content):
            yield name, info >> 4 == _WEAK, index != 0
    else:
        for name, _, _, info, _, index in struct.iter_unpack(layout, content):
            yield name, info >> 4 == _WEAK, index != 0


def table(image: ElfImage) -> bytes:
    """Return the rows of the symbols."""
    address = image.value(elf_image.SYMBOLS)
    count = counted(image)
    if address is None or not count:
        return b""
    _, width = _ROWS[image.header.wide]
    return image.piece(address, count * width, f"table of {count:,} symbols")


def counted(image: ElfImage) -> int:
    """Return how many dynamic symbols there are, which no table says.

    The tables of hashes know those that the library gives to others, and its relocations those
    that it wants. What neither reaches, the loader does not look at.
    """
    return max(_hashed(image), _hashed_by_gnu(image), _relocated(image))


def _hashed(image: ElfImage) -> int:
    """Return the number of symbols that DT_HASH says."""
    address = image.value(elf_image.HASH)
    if address is None:
        return 0
    # nbucket and nchain: the chains have one entry for each symbol.
    _, count = image.numbers("II", address, "table of hashes")
    return count


def _hashed_by_gnu(image: ElfImage) -> int:
    """Return the number of symbols up to the last one in DT_GNU_HASH."""
    address = image.value(elf_image.GNU_HASH)
    if address is None:
        return 0
    # nbuckets, symoffset, bloom_size and bloom_shift, as linkers call them.
    heads, first, words, _ = image.numbers("4I", address, "table of hashes")
    buckets = address + 16 + words * (8 if image.header.wide else 4)
    last = max(_words(image, buckets, heads), default=0)
    if last < first:
        return first
    chain, end = image.place(buckets + 4 * heads + 4 * (last - first))
    # Each word of a chain is a hash, whose lowest bit says that the chain ends here.
    for place in range(chain, end - 3, 4):
        (word,) = struct.unpack_from(f"{image.header.order}I", image.content, place)
        if word & 1:
            return last + 1 + (place - chain) // 4
    raise ValueError("its table of hashes does not end")


def _words(image: ElfImage, address: int, count: int) -> "array[int]":
    """Return a table of 32-bit numbers."""
    if not count:
        return array("I")
    content = image.piece(address, 4 * count, "table of hashes")
    return _native(image, "I", content)


def _relocated(image: ElfImage) -> int:
    """Return the number of symbols up to the last one that a relocation names."""
    last = 0
    for place, length in _RELOCATIONS:
        address = image.value(place)
        size = image.value(length)
        if address is None or not size:
            continue
        columns = 3 if _has_addends(image, place) else 2
        last = max(last, _named_by(image, address, size, columns))
    return last + 1 if last else 0


def _has_addends(image: ElfImage, table: int) -> bool:
    """Say whether the relocations of a table are of three numbers (Elf64_Rela), or of two."""
    rela, _, jumps = (address for address, _ in _RELOCATIONS)
    # Only the table for calls may be of either kind, and says itself of which.
    if table == jumps:
        return image.value(_RELOCATIONS_KIND) == _WITH_ADDEND
    return table == rela


def _named_by(image: ElfImage, address: int, size: int, columns: int) -> int:
    """Return the highest number of a symbol in a table of relocations."""
    wide = image.header.wide
    width = columns * (8 if wide else 4)
    content = image.piece(address, size, "table of relocations")
    whole = content[: size // width * width]
    # r_info: the symbol in the upper 32 bits, or 24 where the file has 32 bits.
    infos = _native(image, "Q" if wide else "I", whole)[1::columns]
    return max(infos, default=0) >> (32 if wide else 8)


def _native(image: ElfImage, kind: str, content: bytes) -> "array[int]":
    """Return numbers of the file in this machine's byte order."""
    words = array(kind, content)
    if (image.header.order == "<") != (sys.byteorder == "little"):
        words.byteswap()
    return words


def _versioned(versions: "array[int]", number: int) -> bool:
    """Say whether a symbol has a version with a name; the highest bit hides it from linkers."""
    return number < len(versions) and versions[number] & 0x7FFF >= _NAMELESS_VERSIONS


def _versions(image: ElfImage) -> "array[int]":
    """Return the number of each symbol's version; none where no symbol has one."""
    address = image.value(elf_image.VERSIONS)
    count = counted(image)
    if address is None or not count:
        return array("H")
    return _native(image, "H", image.piece(address, 2 * count, "table of versions"))


def name_with_version(image: ElfImage, index: int) -> str:
    """Return the name of the first symbol that has a version, by the version's number."""
    versions = _versions(image)
    if index not in versions:
        return ""
    rows = table(image)
    layout, width = _ROWS[image.header.wide]
    at = versions.index(index) * width
    # A damaged library may have versions without a table of symbols.
    if at + width > len(rows):
        return ""
    row = struct.unpack_from(image.header.order + layout, rows, at)
    return image.string(row[0], "name of a symbol")
