"""macOS libraries: the load commands of a Mach-O file, thin or universal.

macholib reads every section into memory to get at them, a gigabyte for a TensorFlow, so they are
read here; the layout is that of <mach-o/loader.h>.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

from tfwright.wheel.binary.cpu import Cpu
from tfwright.wheel.binary.elf_symbols import Symbols

THIN = {
    b"\xcf\xfa\xed\xfe": "<6I4x",
    b"\xce\xfa\xed\xfe": "<6I",
    b"\xfe\xed\xfa\xcf": ">6I4x",
    b"\xfe\xed\xfa\xce": ">6I",
}
"""By the first four bytes, the rest of the header: 64 bits, then 32, in both byte orders."""
UNIVERSAL = {b"\xca\xfe\xba\xbe": ">4xIII4x", b"\xca\xfe\xba\xbf": ">4xIQQ8x"}
"""How a slice of a universal file is described: machine's subtype, then offset and size."""
MAGICS = (*THIN, *UNIVERSAL)
MOST = 64
"""Slices that a universal file may have. Java's classes begin like one, with a version where the number of slices is."""
LARGEST = 16 * 1024**2
"""Bytes that the load commands may take."""

MACHINES = {0x01000007: "x86_64", 0x0100000C: "arm64", 7: "i386", 12: "arm", 0x01000012: "ppc64"}
_ID, _LOADS, _RPATH = 0xD, {0xC, 0x80000018, 0x8000001F, 0x20, 0x80000023}, 0x8000001C
"""LC_ID_DYLIB; LC_LOAD_DYLIB and its weak, re-exporting, lazy and upward kin; LC_RPATH."""
_MINIMUM = {0x24: 8, 0x32: 12}
"""LC_VERSION_MIN_MACOSX and what replaced it, LC_BUILD_VERSION: where in them the version stands."""
HEAD = 8
"""Bytes at the start of every load command: its kind and its size."""


@dataclass(frozen=True)
class MachO:
    """What a macOS library says of itself, for one machine."""

    machine: str
    """As ``uname -m`` says it."""
    install_name: str
    """Where others that are linked with it look for it."""
    needed: tuple[str, ...]
    """The libraries that the loader has to find, ``@rpath`` and its kin as they stand."""
    search: tuple[str, ...]
    """What ``@rpath`` stands for."""
    minimum: str
    """The oldest macOS that it says it runs on; empty where it says none."""
    # What follows is in other tables than the load commands; `macho_content` reads it.
    architectures: tuple[str, ...] = ()
    """The GPU code in it, as `elf.Elf` has it."""
    symbols: Symbols = field(default_factory=Symbols)
    cpu: Cpu | None = None
    """What it needs of an x86-64 CPU; None for other machines."""


def read(stream: IO[bytes]) -> tuple[MachO, ...]:
    """Read a library, once for each machine that it is for.

    Raises ValueError or struct.error where the file is no sound Mach-O file.
    """
    return tuple(_slice(stream, start) for start in starts(stream))


def starts(stream: IO[bytes]) -> list[int]:
    """Return where the slices start; a thin file is its own one slice. Raises as `read` does."""
    stream.seek(0)
    magic = stream.read(4)
    if magic in THIN:
        return [0]
    layout = UNIVERSAL.get(magic)
    (count,) = struct.unpack(">I", stream.read(4))
    if layout is None or count > MOST:
        raise ValueError("it is no Mach-O file")
    size = struct.calcsize(layout)
    return [struct.unpack(layout, stream.read(size))[1] for _ in range(count)]


def _slice(stream: IO[bytes], start: int) -> MachO:
    """Read one machine's part."""
    machine, order, commands = load_commands(stream, start)
    return MachO(
        machine=MACHINES.get(machine, f"machine {machine}"),
        install_name="".join([_text(body, order) for kind, body in commands if kind == _ID][:1]),
        needed=tuple(_text(body, order) for kind, body in commands if kind in _LOADS),
        search=tuple(_text(body, order) for kind, body in commands if kind == _RPATH),
        minimum="".join(
            [_minimum(kind, body, order) for kind, body in commands if kind in _MINIMUM][:1]
        ),
    )


def load_commands(stream: IO[bytes], start: int) -> tuple[int, str, list[tuple[int, bytes]]]:
    """Return the number of the machine, the byte order as `struct` writes it, and kind and content of each load command. Raises as `read` does."""
    stream.seek(start)
    layout = THIN.get(stream.read(4))
    if layout is None:
        raise ValueError(f"at {start:#x} there is no Mach-O file, as its table says")
    machine, _, _, count, size, _ = struct.unpack(layout, stream.read(struct.calcsize(layout)))
    if size > LARGEST:
        raise ValueError(f"its load commands say that they take {size:,} bytes")
    return machine, layout[0], list(_commands(stream.read(size), layout[0], count))


def _commands(content: bytes, order: str, count: int) -> Iterator[tuple[int, bytes]]:
    """Return kind and content, its head included, of each load command."""
    start = 0
    for _ in range(count):
        kind, size = struct.unpack_from(f"{order}2I", content, start)
        if size < HEAD or start + size > len(content):
            raise ValueError(
                f"its load command at {start:#x} of {len(content):#x} says that it takes {size:,} bytes"
            )
        yield kind, content[start : start + size]
        start += size


def _text(command: bytes, order: str) -> str:
    """Return the path in a load command, which says where in itself that starts."""
    (start,) = struct.unpack_from(f"{order}I", command, HEAD)
    return command[start:].partition(b"\0")[0].decode("utf-8", "replace")


def _minimum(kind: int, command: bytes, order: str) -> str:
    """Return the oldest macOS; its three numbers share a word."""
    (word,) = struct.unpack_from(f"{order}I", command, _MINIMUM[kind])
    major, minor, patch = word >> 16, word >> 8 & 0xFF, word & 0xFF
    return f"{major}.{minor}" + (f".{patch}" if patch else "")
