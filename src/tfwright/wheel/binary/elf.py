"""Linux libraries: what one needs to be loaded, and what is in it."""

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import IO, TYPE_CHECKING

from tfwright.wheel.binary import cpu, elf_symbols, fatbin, machine_code
from tfwright.wheel.binary.cpu import Cpu
from tfwright.wheel.binary.elf_symbols import ElfTable, Symbols

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.gnuversions import GNUVerNeedSection

MAGIC = b"\x7fELF"
MOST = 10_000
"""Sections, and versions, that a file may have; one that says more lies, to keep its reader busy."""

FAMILIES = ("GLIBC", "GLIBCXX", "CXXABI")
DT_RELR_SINCE = "2.36"
"""The glibc whose ``GLIBC_ABI_DT_RELR`` a library with packed relocations asks for."""


@dataclass(frozen=True)
class VersionRequirement:
    """The newest version of a family of symbols that a library needs."""

    version: str
    symbol: str
    """One that has this version; empty where only the version itself is asked for."""


@dataclass(frozen=True)
class Elf:
    """What a Linux library says of itself."""

    machine: str
    """As ``uname -m`` says it."""
    soname: str
    needed: tuple[str, ...]
    """The libraries that the loader has to find."""
    search: tuple[str, ...]
    """Where it looks for them first: the rpath or runpath."""
    requires: dict[str, VersionRequirement]
    """By family, as ``GLIBC``."""
    architectures: tuple[str, ...]
    """The GPU code in it: ``sm_70`` (SASS), ``compute_70`` (PTX), ``lto_70`` (LTO-IR)."""
    symbols: Symbols = field(default_factory=Symbols)
    cpu: Cpu | None = None
    """What it needs of an x86-64 CPU; None for other machines, and where the code was not read."""

    @property
    def strings(self) -> tuple[str, ...]:
        """The std::string of its interface: ``cxx11``, ``before cxx11``, both or none."""
        return self.symbols.strings


def read(stream: IO[bytes]) -> Elf:
    """Read a library, but for its machine code; only the sections that are needed.

    Raises ValueError, or what pyelftools raises, where the file is no sound ELF file.
    """
    return _read(_opened(stream), stream)[0]


def examine(stream: IO[bytes]) -> tuple[Elf, ElfTable]:
    """Read a library with its machine code, and return the names that it shares with others as well. Raises as `read` does."""
    file = _opened(stream)
    (found, table), code = _read(file, stream), machine_code.of_elf(file, stream)
    return replace(found, cpu=cpu.read(code) if code else None), table


def _opened(stream: IO[bytes]) -> "ELFFile":
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415 start-up is part of the product

    elf = ELFFile(stream)
    if elf.num_sections() > MOST:
        raise ValueError(f"it says that it has {elf.num_sections():,} sections")
    return elf


def _read(elf: "ELFFile", stream: IO[bytes]) -> tuple[Elf, ElfTable]:
    dynamic, table = _dynamic(elf), elf_symbols.read(elf)
    found = Elf(
        machine=_machine(elf),
        soname="".join(dynamic.get("DT_SONAME", [])[:1]),
        needed=tuple(dynamic.get("DT_NEEDED", [])),
        search=tuple(
            folder
            for tag in ("DT_RPATH", "DT_RUNPATH")
            for entry in dynamic.get(tag, [])
            for folder in entry.split(":")
        ),
        requires=_requires(elf),
        architectures=_architectures(elf, stream),
        symbols=table.symbols,
    )
    return found, table


def _machine(elf: "ELFFile") -> str:
    """Return the machine as `uname` and wheels name it, or ELF's own name for one that no TensorFlow is built for."""
    name = str(elf["e_machine"])
    if name == "EM_PPC64":
        return "ppc64le" if elf.little_endian else "ppc64"
    return {
        "EM_X86_64": "x86_64",
        "EM_AARCH64": "aarch64",
        "EM_386": "i686",
        "EM_ARM": "armv7l",
        "EM_S390": "s390x",
    }.get(name, name)


def _dynamic(elf: "ELFFile") -> dict[str, list[str]]:
    """Return the texts in the table that the loader reads, by their tags."""
    from elftools.elf.dynamic import DynamicSection  # noqa: PLC0415 start-up is part of the product

    section = elf.get_section_by_name(".dynamic")
    texts: dict[str, list[str]] = {}
    for tag in islice(section.iter_tags(), MOST) if isinstance(section, DynamicSection) else ():
        attribute = {
            "DT_NEEDED": "needed",
            "DT_SONAME": "soname",
            "DT_RPATH": "rpath",
            "DT_RUNPATH": "runpath",
        }.get(tag.entry.d_tag)
        if attribute:
            texts.setdefault(tag.entry.d_tag, []).append(getattr(tag, attribute))
    return texts


def _requires(elf: "ELFFile") -> dict[str, VersionRequirement]:
    """Return the newest version of each family that is asked for, with a symbol that has it."""
    from elftools.elf.gnuversions import GNUVerNeedSection  # noqa: PLC0415 start-up is part of the product

    section = elf.get_section_by_name(".gnu.version_r")
    if not isinstance(section, GNUVerNeedSection):
        return {}
    newest: dict[str, tuple[str, int]] = {}
    for name, index in _versions(section):
        family, version = _parted(name)
        if family in FAMILIES and numbers(version) > numbers(newest.get(family, ("", 0))[0]):
            newest[family] = version, index
    return {
        family: VersionRequirement(version, _symbol(elf, index))
        for family, (version, index) in sorted(newest.items())
    }


def _versions(section: "GNUVerNeedSection") -> list[tuple[str, int]]:
    """Return the versions that are asked for, with the number that stands for each in the table of symbols."""
    needs = islice(section.iter_versions(), MOST)
    # The chains can lead in circles; both are cut where no real one reaches.
    versions = islice((one for _, auxiliaries in needs for one in islice(auxiliaries, MOST)), MOST)
    return [(one.name, one["vna_other"]) for one in versions]


def _parted(name: str) -> tuple[str, str]:
    """Part ``GLIBC_2.17`` into family and version."""
    if name == "GLIBC_ABI_DT_RELR":
        return "GLIBC", DT_RELR_SINCE
    family, _, version = name.partition("_")
    return (family, version) if re.fullmatch(r"\d+(\.\d+)*", version) else ("", "")


def numbers(version: str) -> tuple[int, ...]:
    """Return a version as something that compares; the empty one is older than all."""
    return tuple(map(int, re.findall(r"\d{1,9}", version)))


def _symbol(elf: "ELFFile", index: int) -> str:
    """Return the name of the first symbol that has a version."""
    from elftools.elf.sections import SymbolTableSection  # noqa: PLC0415 start-up is part of the product

    table, symbols = elf.get_section_by_name(".gnu.version"), elf.get_section_by_name(".dynsym")
    if table is None or not isinstance(symbols, SymbolTableSection):
        return ""
    content = elf_symbols.content(table)
    marks = struct.unpack(
        f"{'<' if elf.little_endian else '>'}{len(content) // 2}H", content[: len(content) // 2 * 2]
    )
    return str(symbols.get_symbol(marks.index(index)).name) if index in marks else ""


def _architectures(elf: "ELFFile", stream: IO[bytes]) -> tuple[str, ...]:
    """Return the GPU architectures in all sections that hold fat binaries."""
    sections = [section for section in elf.iter_sections() if section.name in fatbin.SECTIONS]
    found = {
        name
        for section in sections
        for name in fatbin.architectures(stream, section["sh_offset"], section["sh_size"])
    }
    return ordered(found)


def ordered(architectures: Iterable[str]) -> tuple[str, ...]:
    """Return GPU architectures once each, SASS first, oldest first."""
    return tuple(
        sorted(
            set(architectures),
            key=lambda name: (
                name.partition("_")[0] != "sm",
                name.partition("_")[0],
                numbers(name),
                name,
            ),
        )
    )
