"""Linux libraries: what one needs to be loaded, and what is in it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tfwright.facts.compatibility import is_older
from tfwright.wheel.binary import cpu, elf_image, fatbin, machine_code
from tfwright.wheel.binary.cpu import Cpu
from tfwright.wheel.binary.elf_image import TENSORFLOW, Content, ElfImage, Symbols

MOST_VERSIONS = 10_000
"""Versions that a library may ask for; a chain of them may lead anywhere."""
FAMILIES = ("GLIBC", "GLIBCXX", "CXXABI")
DT_RELR_SINCE = "2.36"
"""The glibc whose ``GLIBC_ABI_DT_RELR`` a library with packed relocations asks for."""
MACHINES = {
    3: "i686",
    20: "ppc",
    21: "ppc64",
    22: "s390x",
    40: "armv7l",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
}
"""As ``uname -m`` and wheels name them, by e_machine."""
STRINGS = {"cxx11": b"7__cxx1112basic_string", "before cxx11": b"RKSs"}
"""In the mangled names of functions with a std::string. The two kinds cannot call each other."""
STANDARD = (b"_ZNSt", b"_ZNKSt", b"_ZSt", b"_ZGTtNSt", b"_ZT")
"""How names of the standard library's own begin.

gcc's static half of it brings both kinds of strings into whatever it is linked into.
"""
_PYTHON = re.compile(rb"_?Py[A-Z_]")


@dataclass(frozen=True)
class VersionRequirement:
    """The newest version of something that a library needs of the system."""

    version: str
    symbol: str = ""
    """A symbol that has this version; empty where only the version itself is asked for."""


@dataclass(frozen=True, kw_only=True)
class LibraryPart:
    """What a library says of itself, for one machine."""

    system: Literal["Linux", "macOS", "Windows"]
    """Of a library for Windows only the GPU code is read."""
    machine: str = ""
    """As ``uname -m`` says it; empty where it is not read."""
    soname: str = ""
    needed: tuple[str, ...] = ()
    """The libraries that the loader has to find; on macOS ``@rpath`` and its kin as they stand."""
    search: tuple[str, ...] = ()
    """Where it looks for them first: the runpath, or else the rpath; what ``@rpath`` stands for."""
    requires: Mapping[str, VersionRequirement] = field(default_factory=dict)
    """By family, as ``GLIBC``, and ``macOS`` where the library says which it runs on."""
    gpu: Mapping[str, int] = field(default_factory=dict)
    """Bytes of GPU code in the file by architecture, as `fatbin.architectures` returns them."""
    symbols: Symbols = field(default_factory=Symbols)
    cpu: Cpu | None = None
    """What it needs of an x86-64 CPU; None for other machines, and where the code was not read."""


@dataclass(frozen=True)
class ElfTable:
    """The symbols of one library, until all libraries of the wheel have been read."""

    exported: frozenset[int]
    """Hashes of the names, which take 100 MB as text."""
    undefined: tuple[bytes, ...]
    """Without a version, not weak, and not Python's."""


def read(content: Content) -> tuple[LibraryPart, ElfTable]:
    """Read a library with its machine code; return the names that it shares with others as well.

    Raises ValueError where its tables do not agree with each other.
    """
    image = ElfImage(content)
    counted, table = _symbols(image)
    name = MACHINES.get(image.machine, f"machine {image.machine}")
    # 64-bit instructions with 32-bit addresses: an ABI of its own, which no wheel tag has.
    machine = "x32" if name == "x86_64" and not image.wide else name
    # A runpath makes the loader ignore the rpath; glibc's takes the last of several.
    search = image.strings(elf_image.RUNPATH) or image.strings(elf_image.RPATH)
    part = LibraryPart(
        system="Linux",
        machine=f"{name}le" if name == "ppc64" and image.order == "<" else machine,
        soname="".join(image.strings(elf_image.SONAME)[-1:]),
        needed=tuple(image.strings(elf_image.NEEDED)),
        search=tuple(search[-1].split(":") if search else ()),
        requires=_newest_versions(image),
        gpu=fatbin.architectures(content),
        symbols=counted,
    )
    # After its tables: to read the machine code takes the longest.
    code = machine_code.elf_code(image)
    return replace(part, cpu=cpu.read(code) if code else None), table


def _symbols(image: ElfImage) -> tuple[Symbols, ElfTable]:
    """Read the dynamic symbols. Raises ValueError where the tables do not agree with each other."""
    texts = image.names.texts
    exported, undefined, tensorflow = set[int](), [], 0
    # What the whole table of names does not hold, no symbol has: most libraries end here.
    unseen = {kind: part for kind, part in STRINGS.items() if part in texts}
    found = set[str]()
    for name, weak, defined, versioned in image.symbols():
        if defined:
            exported.add(hash(name))
            tensorflow += TENSORFLOW in name
        elif not name or versioned:
            # A version names the library that has the symbol: the loader checks that by itself.
            continue
        elif not weak and not _PYTHON.match(name):
            # A weak symbol may stay undefined; Python's own are in the interpreter.
            undefined.append(name)
        if unseen and not name.startswith(STANDARD):
            present = {kind for kind, part in unseen.items() if part in name}
            if present:
                found |= present
                unseen = {kind: part for kind, part in unseen.items() if kind not in found}
    counted = Symbols(
        exports=len(exported),
        tensorflow=tensorflow,
        strings=tuple(kind for kind in STRINGS if kind in found),
    )
    return counted, ElfTable(frozenset(exported), tuple(undefined))


def _newest_versions(image: ElfImage) -> dict[str, VersionRequirement]:
    """Return the newest version of each family that is asked for, with a symbol that has it."""
    newest: dict[str, tuple[str, int]] = {}
    for name, index in _required_versions(image):
        family, _, version = name.partition("_")
        # Not a version of a symbol: ld adds it so that older loaders refuse the library.
        if name == "GLIBC_ABI_DT_RELR":
            version = DT_RELR_SINCE
        if family not in FAMILIES or not re.fullmatch(r"\d{1,9}(\.\d{1,9})*", version):
            continue
        # As numbers: as text, 2.5 would be newer than 2.17.
        if is_older(newest.get(family, ("", 0))[0], version):
            newest[family] = version, index
    return {
        family: VersionRequirement(version, image.name_with_version(index))
        for family, (version, index) in sorted(newest.items())
    }


def _required_versions(image: ElfImage) -> Iterator[tuple[str, int]]:
    """Return the versions that are asked for, each with its number in the table of symbols."""
    address = image.value(elf_image.REQUIRED_VERSIONS)
    left = MOST_VERSIONS
    while address is not None:
        _, _, _, first, further = image.read_numbers("HHIII", address, "list of versions")
        own: int | None = address + first
        while own is not None:
            left -= 1
            if left < 0:
                raise ValueError(f"it asks for more than {MOST_VERSIONS:,} versions")
            _, _, index, name, following = image.read_numbers("IHHII", own, "list of versions")
            yield image.string(name, "name of a version"), index
            own = own + following if following else None
        # Offsets count from the entry itself; 0 ends a chain (Elf64_Verneed in the gABI).
        address = address + further if further else None
