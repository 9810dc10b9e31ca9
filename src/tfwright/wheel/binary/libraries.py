"""Shared libraries, as far as their symbols tell what they register with TensorFlow when they are loaded."""

from pathlib import Path
from typing import IO, NamedTuple

from tfwright.wheel.binary import elf_symbols


class Registered(NamedTuple):
    """What a library of operations brings."""

    operations: bool
    kernels: bool
    """What operations run by; without one they only have a name."""

    @property
    def stub(self) -> str:
        """Why the library is a stub; empty if it is none."""
        if self.kernels:
            return ""
        return "its operations have no kernel" if self.operations else "it registers no operation"


def registered(library: Path) -> Registered:
    """Say what a library registers."""
    with library.open("rb") as stream:
        return read(stream)


def read(stream: IO[bytes]) -> Registered:
    """Say the same of a library that is open."""
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415 start-up is part of the product

    stream.seek(0)
    if stream.read(4) == b"\x7fELF":
        symbols = elf_symbols.read(ELFFile(stream)).symbols
        return Registered(symbols.registers_ops, symbols.registers_kernels)
    # Mach-O keeps the names of its symbols as plain text; reading its tables is not worth a parser here.
    content = stream.read()
    return Registered(elf_symbols.REGISTRY in content, elf_symbols.KERNELS in content)
