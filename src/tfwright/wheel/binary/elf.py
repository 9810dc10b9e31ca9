"""Linux libraries: what one needs to be loaded, and what is in it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from tfwright.wheel.binary import cpu, elf_image, elf_symbols, fatbin, machine_code
from tfwright.wheel.binary.content import Content
from tfwright.wheel.binary.cpu import Cpu
from tfwright.wheel.binary.elf_image import ElfHeader, ElfImage
from tfwright.wheel.binary.elf_symbols import ElfTable, Symbols

MAGIC = elf_image.MAGIC
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
_X86_64, _POWER = 62, 21


@dataclass(frozen=True)
class VersionRequirement:
    """The newest version of a family of symbols that a library needs."""

    version: str
    symbol: str
    """A symbol that has this version; empty where only the version itself is asked for."""


@dataclass(frozen=True)
class Elf:
    """What a Linux library says of itself."""

    machine: str
    """As ``uname -m`` says it."""
    soname: str
    needed: tuple[str, ...]
    """The libraries that the loader has to find."""
    search: tuple[str, ...]
    """Where it looks for them first: the runpath, or else the rpath."""
    requires: dict[str, VersionRequirement]
    """By family, as ``GLIBC``."""
    architectures: tuple[str, ...]
    """The GPU code in it: ``sm_70`` (SASS), ``compute_70`` (PTX), ``lto_70`` (LTO-IR)."""
    gpu_bytes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of GPU code by architecture, as they are in the file."""
    symbols: Symbols = field(default_factory=Symbols)
    cpu: Cpu | None = None
    """What it needs of an x86-64 CPU; None for other machines, and where the code was not read."""

    @property
    def strings(self) -> tuple[str, ...]:
        """The std::string of its interface: ``cxx11``, ``before cxx11``, both or none."""
        return self.symbols.strings


def read(content: Content) -> Elf:
    """Read a library, but for its machine code.

    Raises ValueError where the loader would refuse the file, or what it finds cannot be judged.
    """
    return _read(elf_image.load(content))[0]


def examine(content: Content) -> tuple[Elf, ElfTable]:
    """Read a library with its machine code; return the names that it shares with others as well.

    Raises ValueError as `read` does.
    """
    image = elf_image.load(content)
    found, table = _read(image)
    # Only now: decoding takes long, and `read` needs nothing of it.
    code = machine_code.of_elf(image)
    return replace(found, cpu=cpu.read(code) if code else None), table


def _read(image: ElfImage) -> tuple[Elf, ElfTable]:
    table = elf_symbols.read(image)
    gpu = fatbin.architectures(image.content)
    found = Elf(
        machine=_machine(image.header),
        soname="".join(_strings(image, elf_image.SONAME)[-1:]),
        needed=tuple(_strings(image, elf_image.NEEDED)),
        search=tuple(_search(image)),
        requires=_requires(image),
        architectures=ordered(gpu),
        gpu_bytes=gpu,
        symbols=table.symbols,
    )
    return found, table


def _machine(header: ElfHeader) -> str:
    """Return the machine as `uname` and wheels name it, or its number in ELF."""
    if header.machine == _X86_64 and not header.wide:
        # 64-bit instructions with 32-bit addresses: an ABI of its own, which no wheel
        # tag has.
        return "x32"
    name = MACHINES.get(header.machine, f"machine {header.machine}")
    little = header.order == "<"
    return f"{name}le" if header.machine == _POWER and little else name


def _strings(image: ElfImage, tag: int) -> list[str]:
    """Return the texts of a tag in the dynamic table."""
    what = "name of a library or directory"
    return [image.string(value, what) for own, value in image.entries if own == tag]


def _search(image: ElfImage) -> Iterator[str]:
    """Return the directories that the loader searches; a runpath makes it ignore the rpath."""
    lists = _strings(image, elf_image.RUNPATH) or _strings(image, elf_image.RPATH)
    # glibc's loader takes the last of several, as of every tag.
    for folders in lists[-1:]:
        yield from folders.split(":")


def _requires(image: ElfImage) -> dict[str, VersionRequirement]:
    """Return the newest version of each family that is asked for, with a symbol that has it."""
    newest: dict[str, tuple[str, int]] = {}
    for name, index in _versions(image):
        family, version = _parted(name)
        known = newest.get(family, ("", 0))[0]
        # As numbers: as text, 2.5 would be newer than 2.17.
        if family in FAMILIES and numbers(version) > numbers(known):
            newest[family] = version, index
    found = {}
    for family, (version, index) in sorted(newest.items()):
        symbol = elf_symbols.name_with_version(image, index)
        found[family] = VersionRequirement(version, symbol)
    return found


def _versions(image: ElfImage) -> Iterator[tuple[str, int]]:
    """Return the versions that are asked for, each with its number in the table of symbols."""
    address = image.value(elf_image.REQUIRED_VERSIONS)
    left = MOST_VERSIONS
    while address is not None:
        _, _, _, first, further = image.numbers("HHIII", address, "list of versions")
        own: int | None = address + first
        while own is not None:
            left -= 1
            if left < 0:
                raise ValueError(f"it asks for more than {MOST_VERSIONS:,} versions")
            _, _, index, name, following = image.numbers("IHHII", own, "list of versions")
            yield image.string(name, "name of a version"), index
            own = own + following if following else None
        # The offsets count from the entry itself; 0 ends a chain (Elf64_Verneed in the
        # gABI).
        address = address + further if further else None


def _parted(name: str) -> tuple[str, str]:
    """Part ``GLIBC_2.17`` into family and version."""
    # Not a version of a symbol: ld adds it so that older loaders refuse the library.
    if name == "GLIBC_ABI_DT_RELR":
        return "GLIBC", DT_RELR_SINCE
    family, _, version = name.partition("_")
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})*", version):
        return "", ""
    return family, version


def numbers(version: str) -> tuple[int, ...]:
    """Return a version as something that compares; the empty one is older than all."""
    return tuple(map(int, re.findall(r"\d{1,9}", version)))


def ordered(architectures: Iterable[str]) -> tuple[str, ...]:
    """Return GPU architectures once each, SASS first, oldest first."""
    return tuple(sorted(set(architectures), key=_age))


def _age(architecture: str) -> tuple[bool, str, tuple[int, ...], str]:
    kind = architecture.partition("_")[0]
    return kind != "sm", kind, numbers(architecture), architecture
