"""Shared libraries, as far as their symbols tell what is in them."""

from pathlib import Path
from typing import IO

from tfwright.wheel import elf_symbols


def registers_ops(library: Path) -> bool:
    """Say whether a library registers any TensorFlow operation when it is loaded."""
    with library.open("rb") as stream:
        return registers(stream)


def registers(stream: IO[bytes]) -> bool:
    """Say the same of a library that is open."""
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415 start-up is part of the product

    stream.seek(0)
    if stream.read(4) == b"\x7fELF":
        return elf_symbols.read(ELFFile(stream)).symbols.registers_ops
    # Mach-O keeps the names of its symbols as plain text; reading its tables is not worth a parser here.
    return elf_symbols.REGISTRY in stream.read()
