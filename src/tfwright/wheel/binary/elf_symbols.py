"""Symbols of a Linux library: what it gives to others, and what it has to find in them."""

import re
import struct
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section

LARGEST = 512 * 1024**2
"""Bytes of a section that are read at once; the names in a TensorFlow with everything in one library take 100 MB."""
MOST_MISSING = 20
"""Of the names that a library misses, how many are kept."""
TENSORFLOW = b"10tensorflow"
"""The namespace in a mangled name; what operations of users' own are linked with."""
REGISTRY = b"OpDefBuilder"
"""In the name of every function that TensorFlow's REGISTER_OP calls, in all releases."""
KERNELS = b"OpKernelRegistrar"
"""The same for REGISTER_KERNEL_BUILDER."""
STRINGS = {"cxx11": b"7__cxx1112basic_string", "before cxx11": b"RKSs"}
"""In the mangled names of functions with a std::string; a library that gives the one cannot be called with the other."""
STANDARD = (b"_ZNSt", b"_ZNKSt", b"_ZSt", b"_ZGTtNSt", b"_ZT")
"""How names of the standard library's own begin: gcc's static half of it brings both kinds of strings into whatever it is linked into."""
_PYTHON = re.compile(rb"_?Py[A-Z_]")
_NAMELESS_VERSIONS = 2
"""The first number in .gnu.version that stands for a version with a name."""
_WEAK = 2


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
    """What it needs and no library provides that it can reach; the first `MOST_MISSING`."""


@dataclass(frozen=True)
class ElfTable:
    """The symbols of one library, until all libraries of the wheel have been read."""

    symbols: Symbols
    given: frozenset[int]
    """Hashes of the names, which take 100 MB as text."""
    wanted: tuple[bytes, ...]
    """Without a version, not weak, and not Python's."""


def read(elf: "ELFFile") -> ElfTable:
    """Read the table of dynamic symbols."""
    section = elf.get_section_by_name(".dynsym")
    if section is None:
        return ElfTable(Symbols(), frozenset(), ())
    names, versions = content(elf.get_section(section["sh_link"])), _versions(elf)
    given, wanted, tensorflow, registry, kernels, abis = (
        set[int](),
        [],
        0,
        False,
        False,
        dict.fromkeys(STRINGS, False),
    )
    for number, (place, weak, here) in enumerate(_rows(elf, section)):
        name = names[place : names.find(b"\0", place)]
        registry = registry or REGISTRY in name
        kernels = kernels or KERNELS in name
        if here:
            given.add(hash(name))
            tensorflow += TENSORFLOW in name
        elif not name or _versioned(versions, number):
            continue
        elif not weak and not _PYTHON.match(name):
            wanted.append(name)
        for abi, part in STRINGS.items() if not name.startswith(STANDARD) else ():
            abis[abi] = abis[abi] or part in name
    strings = tuple(abi for abi, there in abis.items() if there)
    return ElfTable(
        Symbols(len(given), tensorflow, registry, kernels, strings), frozenset(given), tuple(wanted)
    )


def _rows(elf: "ELFFile", section: "Section") -> Iterator[tuple[int, bool, bool]]:
    """Return where each symbol's name stands, whether it is weak, and whether it is given; pyelftools takes a minute for those of a TensorFlow."""
    order = "<" if elf.little_endian else ">"
    if elf.elfclass == 64:  # noqa: PLR2004 bits
        for name, info, _, index, _, _ in struct.iter_unpack(f"{order}IBBHQQ", whole(section, 24)):
            yield name, info >> 4 == _WEAK, index != 0
    else:
        for name, _, _, info, _, index in struct.iter_unpack(f"{order}IIIBBH", whole(section, 16)):
            yield name, info >> 4 == _WEAK, index != 0


def whole(section: "Section", row: int) -> bytes:
    """Return the rows of a table, each of so many bytes, that are whole."""
    data = content(section)
    return data[: len(data) // row * row]


def content(section: "Section") -> bytes:
    """Return what is in a section, whose size is the file's own claim."""
    if section["sh_size"] > LARGEST:
        raise ValueError(
            f"its section {section.name} says that it has {section['sh_size']:,} bytes"
        )
    return section.data()


def _versioned(versions: "array[int]", number: int) -> bool:
    """Say whether a symbol has a version with a name; the highest bit only hides one from those that link."""
    return number < len(versions) and versions[number] & 0x7FFF >= _NAMELESS_VERSIONS


def _versions(elf: "ELFFile") -> "array[int]":
    """Return the number of each symbol's version; none where no symbol has one."""
    table = elf.get_section_by_name(".gnu.version")
    data = content(table) if table is not None else b""
    marks = array("H", data[: len(data) // 2 * 2])
    if elf.little_endian != (sys.byteorder == "little"):
        marks.byteswap()
    return marks
