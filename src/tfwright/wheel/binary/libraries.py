"""Shared libraries, as far as their symbols tell what they register with TensorFlow."""

import mmap
from pathlib import Path
from typing import NamedTuple

from tfwright.wheel.binary import elf_image, elf_symbols
from tfwright.wheel.binary.content import Content


class Registered(NamedTuple):
    """What a library of operations brings."""

    operations: bool
    kernels: bool
    """What operations run by; without one they only have a name."""

    @property
    def stub(self) -> str:
        """Why the library is a stub; empty if it is not one."""
        if self.kernels:
            return ""
        if self.operations:
            return "its operations have no kernel"
        return "it registers no operation"


def registered(library: Path) -> Registered:
    """Say what a library registers. Raises ValueError where it is damaged."""
    with library.open("rb") as stream:
        # mmap refuses an empty file.
        if not library.stat().st_size:
            return Registered(operations=False, kernels=False)
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return read(content)


def read(content: Content) -> Registered:
    """Say the same of a library whose bytes are at hand."""
    if content[:4] == elf_image.MAGIC:
        # In ELF only dynamic symbols count: the text may also stand in debug
        # information.
        symbols = elf_symbols.read(elf_image.load(content)).symbols
        return Registered(symbols.registers_ops, symbols.registers_kernels)
    # Mach-O keeps the names of its symbols as plain text, which is enough to find them.
    operations = content.find(elf_symbols.REGISTRY) >= 0
    kernels = content.find(elf_symbols.KERNELS) >= 0
    return Registered(operations, kernels)
