"""One shared library of a wheel, read from its bytes alone."""

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO

from tfwright.wheel.binary import elf, libraries, macho, macho_content
from tfwright.wheel.binary.elf import Elf
from tfwright.wheel.binary.elf_symbols import MOST_MISSING, ElfTable
from tfwright.wheel.binary.macho import MachO
from tfwright.wheel.inspect import text as inspection_text
from tfwright.wheel.inspect.text import Text

NCCL_OPS = "_nccl_ops.so"


@dataclass(frozen=True)
class Library:
    """One shared library, or the reason why it could not be read."""

    path: str
    size: int
    elf: Elf | None = None
    macho: tuple[MachO, ...] = ()
    """Once for each machine."""
    text: Text = field(default_factory=Text)
    registered: libraries.Registered | None = None
    """Of ``_nccl_ops.so``: whether it is the real one, or a stub."""
    fault: str = ""

    @property
    def parts(self) -> tuple[Elf | MachO, ...]:
        """What the library says of itself, once for each machine."""
        return (self.elf,) if self.elf else self.macho


def read(member: zipfile.ZipInfo, copy: IO[bytes]) -> tuple[Library, ElfTable | None]:
    """Read a library, whatever is in the file that is named like one."""
    copy.seek(0)
    magic = copy.read(4)
    try:
        examined, table = elf.examine(copy) if magic == elf.MAGIC else (None, None)
        library = Library(
            path=member.filename,
            size=member.file_size,
            elf=examined,
            macho=macho_content.read(copy, macho.read(copy)) if magic in macho.MAGICS else (),
            text=inspection_text.search(copy),
            registered=libraries.read(copy)
            if PurePosixPath(member.filename).name == NCCL_OPS
            else None,
            fault=""
            if magic in {elf.MAGIC, *macho.MAGICS}
            else "it is neither an ELF nor a Mach-O file",
        )
    except Exception as fault:  # noqa: BLE001 bytes made to mislead fail in a parser in every way that Python knows
        return Library(
            member.filename, member.file_size, fault=str(fault) or type(fault).__name__
        ), None
    return library, table


def notes(library: Library) -> Iterator[str]:
    """Say what a sound library may still do to its users."""
    if library.registered and library.registered.stub:
        yield f"a stub, {library.registered.stub}"
    if library.text.leaks:
        yield f"names paths as on a machine that builds, {library.text.leaks} times, such as {library.text.paths[0]}"
    if library.elf and (missing := library.elf.symbols.missing):
        least = "at least " if len(missing) == MOST_MISSING else ""
        yield f"needs {missing[0]}{f' and {least}{len(missing) - 1} more' if len(missing) > 1 else ''}, and names no library that gives it"
    if stray := [
        folder for folder in _search(library) if not folder.startswith(("$ORIGIN", "@", "/"))
    ]:
        yield f"looks for libraries in {', '.join(stray)}, below whatever directory it is started in"


def needed(library: Library) -> tuple[str, ...]:
    """Return the libraries that one needs, for all its machines."""
    return tuple(name for part in library.parts for name in part.needed)


def _search(library: Library) -> tuple[str, ...]:
    """Return the directories that a library is looked for in, for all its machines."""
    return tuple(folder for part in library.parts for folder in part.search)
