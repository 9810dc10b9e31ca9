"""Instructions of x86-64, decoded by capstone and read from its memory.

capstone's own functions make Python objects of every instruction. A TensorFlow has millions of
those that are looked at, and few of them matter.
"""

import ctypes
import struct
from collections.abc import Iterator
from typing import NamedTuple


class VectorInstruction(NamedTuple):
    """An instruction with vector registers."""

    content: bytes
    mnemonic: bytes
    operands: bytes


class Disassembler:
    """capstone, set up for bytes that need not be instructions."""

    def __init__(self) -> None:
        """Load capstone."""
        # Here, since importing it takes long and few commands need it.
        import capstone

        self._library = capstone._cs  # noqa: SLF001 what capstone's own functions call
        self._row = capstone._cs_insn  # noqa: SLF001 as it lies in memory
        self._engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        # Without it capstone stops at the first bytes that it cannot decode.
        self._engine.skipdata = True
        names = ("address", "size", "bytes", "mnemonic", "op_str")
        self._layout = struct.Struct(_layout(self._row, names))

    def vectors(self, content: bytes) -> Iterator[VectorInstruction]:
        """Yield the instructions with vector registers in the code that begins `content`."""
        for _, size, code, mnemonic, operands in self._layout.iter_unpack(self._decoded(content)):
            # xmm, ymm, zmm. What follows a text's NUL is whatever the memory held before.
            if b"mm" in operands and b"mm" in (said := _text(operands)):
                yield VectorInstruction(code[:size], _text(mnemonic), said)

    def covering(self, content: bytes, place: int) -> tuple[int, bytes, str]:
        """Return the instruction that a place in `content` belongs to: start, bytes and name.

        The last two are empty where there is none.
        """
        rows = self._decoded(content)
        width = self._layout.size
        # From the end: whoever asks for a place decodes no further than it needs.
        for start in range(len(rows) - width, -1, -width):
            row = self._layout.unpack_from(rows, start)
            address, size, _, mnemonic, _ = row
            if address <= place:
                if place >= address + size:
                    break
                code = content[address : address + size]
                return address, code, _text(mnemonic).decode()
        return 0, b"", ""

    def _decoded(self, content: bytes) -> bytes:
        """Return what capstone writes of the instructions, row by row."""
        rows = ctypes.POINTER(self._row)()
        count = self._library.cs_disasm(
            self._engine.csh, content, len(content), 0, 0, ctypes.byref(rows)
        )
        if not count:
            return b""
        try:
            return ctypes.string_at(rows, count * self._layout.size)
        finally:
            self._library.cs_free(rows, count)


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _layout(row: type[ctypes.Structure], names: tuple[str, ...]) -> str:
    """Return how `struct` reads these fields, which follow each other, of a row."""
    kinds = {"address": "Q", "size": "H"}
    layout, end = "=", 0
    for name in names:
        field = getattr(row, name)
        kind = kinds.get(name, f"{field.size}s")
        layout += f"{field.offset - end}x{kind}"
        end = field.offset + field.size
    return f"{layout}{ctypes.sizeof(row) - end}x"
