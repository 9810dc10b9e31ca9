"""One shared library of a wheel, read from its bytes alone."""

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from tfwright.wheel.binary import elf, libraries, macho, macho_content
from tfwright.wheel.binary.content import Content
from tfwright.wheel.binary.elf import Elf
from tfwright.wheel.binary.elf_symbols import MOST_MISSING, ElfTable
from tfwright.wheel.binary.macho import MachO
from tfwright.wheel.inspect import nccl

NCCL_OPS = "_nccl_ops.so"
FIXED = re.compile(r"/|@|\$(ORIGIN|\{ORIGIN\})(/|$)")
"""How a directory begins that does not depend on where a program is started."""


@dataclass(frozen=True)
class Library:
    """One shared library, or the reason why it could not be read."""

    path: str
    size: int
    elf: Elf | None = None
    macho: tuple[MachO, ...] = ()
    """Once for each machine."""
    nccl: str = ""
    """The version of the NCCL that is linked into it, with its CUDA if it says that."""
    registered: libraries.Registered | None = None
    """Of ``_nccl_ops.so``: whether it is the real library, or a stub."""
    fault: str = ""

    @property
    def parts(self) -> tuple[Elf | MachO, ...]:
        """What the library says of itself, once for each machine."""
        return (self.elf,) if self.elf else self.macho


def read(member: zipfile.ZipInfo, content: Content) -> tuple[Library, ElfTable | None]:
    """Read a library, whatever is in the file that is named like one."""
    path = member.filename
    size = member.file_size
    try:
        return _read(path, content)
    # Hostile bytes can make a parser fail with any exception.
    except Exception as fault:  # noqa: BLE001 see above
        return Library(path, size, fault=str(fault) or type(fault).__name__), None


def _read(path: str, content: Content) -> tuple[Library, ElfTable | None]:
    """Read a library that is sound. Raises ValueError for other files."""
    # By the content: a file named .so may be a linker script.
    magic = bytes(content[:4])
    linux = None
    table = None
    mac = tuple[MachO, ...]()
    if magic == elf.MAGIC:
        linux, table = elf.examine(content)
    elif magic in macho.MAGICS:
        mac = macho_content.read(content)
    else:
        raise ValueError("it is neither an ELF nor a Mach-O file")
    # Only TensorFlow 1.0 to 1.12 have this library; later ones link NCCL into their
    # own.
    separate = PurePosixPath(path).name == NCCL_OPS
    library = Library(
        path=path,
        size=len(content),
        elf=linux,
        macho=mac,
        nccl=nccl.version(content),
        registered=libraries.read(content) if separate else None,
    )
    return library, table


def notes(library: Library) -> Iterator[str]:
    """Say what a sound library may still do to its users."""
    if library.registered and library.registered.stub:
        yield f"a stub, {library.registered.stub}"
    if library.elf and (missing := library.elf.symbols.missing):
        least = "at least " if len(missing) == MOST_MISSING else ""
        others = f" and {least}{len(missing) - 1} more" if len(missing) > 1 else ""
        yield f"needs {missing[0]}{others}, and names no library that has it"
    # The loader takes a relative path from the working directory, which a stranger may
    # own.
    stray = [folder for folder in search_path(library) if not FIXED.match(folder)]
    if stray:
        # An empty entry, as in "a::b", is the working directory itself.
        shown = ", ".join(folder or "." for folder in stray)
        yield (f"looks for libraries in {shown}, below whatever directory it is started in")
    for part in library.parts:
        if part.cpu and part.cpu.unknown:
            use = part.cpu.unknown[0]
            yield (
                f"asks the CPU what it has, so whether it needs {use.extension} "
                f"is unknown ({use.decided} use it)"
            )


def needed(library: Library) -> tuple[str, ...]:
    """Return the libraries that one needs, for all its machines."""
    return tuple(name for part in library.parts for name in part.needed)


def search_path(library: Library) -> tuple[str, ...]:
    """Return the directories that a library is looked for in, for all its machines."""
    return tuple(folder for part in library.parts for folder in part.search)
