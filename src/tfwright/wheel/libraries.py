"""Shared libraries, as far as their symbols tell what is in them."""

from pathlib import Path

REGISTRATION = "OpDefBuilder"
"""In the name of every function that TensorFlow's REGISTER_OP calls, in all releases."""


def registers_ops(library: Path) -> bool:
    """Say whether a library registers any TensorFlow operation when it is loaded."""
    with library.open("rb") as stream:
        if stream.read(4) == b"\x7fELF":
            return any(REGISTRATION in name for name in _elf_symbols(library))
    # Mach-O keeps the names of its symbols as plain text; reading its tables is not worth a parser here.
    return REGISTRATION.encode() in library.read_bytes()


def _elf_symbols(library: Path) -> list[str]:
    """Return the names in an ELF file's table of dynamic symbols, those that it lacks included."""
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415 start-up is part of the product
    from elftools.elf.sections import SymbolTableSection  # noqa: PLC0415 the same

    with library.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".dynsym")
        return [symbol.name for symbol in table.iter_symbols()] if isinstance(table, SymbolTableSection) else []
