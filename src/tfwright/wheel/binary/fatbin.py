"""GPU code inside a library: the fat binaries that nvcc puts into its sections.

A section is a row of containers, a container a row of entries, an entry a header and code for one
architecture. The header says kind and architecture also where the code is compressed (LZ4 first,
zstd since CUDA 12.8), so nothing is unpacked, and of a gigabyte only the headers are read. NVIDIA
does not document the format; what is here agrees with what cuobjdump prints.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import IO, TypeVar

Row = TypeVar("Row")

SECTIONS = (".nv_fatbin", "__nv_relfatbin")
"""Where the host's linker collects fat binaries; the second holds those of relocatable device code."""

_MAGIC = struct.pack("<I", 0xBA55ED50)
_CONTAINER = struct.Struct("<4sHHQ")
"""Magic, version, size of this header, size of the entries."""
_ENTRY = struct.Struct("<HHIQIIHHI8xQ")
"""Kind, version, size of this header, size of the code, compressed size, options, minor, major, architecture, flags."""
_PREFIXES = {1: "compute_", 2: "sm_", 8: "lto_"}
"""By kind: PTX, which the driver compiles; SASS, which runs as it is; LTO-IR, which only a linker takes."""
_ACCELERATED, _FAMILY = 1 << 20, 1 << 21
"""Flags of code for one architecture only (``sm_90a``) and for its family (``sm_100f``)."""
MOST = 1_000_000
"""Containers, and entries, that a section may have; the largest library of NVIDIA's own has some thousand."""
_WINDOW = 64 * 1024


def architectures(stream: IO[bytes], start: int, size: int) -> set[str]:
    """Return what the fat binaries in a section hold code for, as nvcc names it: ``sm_70``, ``compute_70``, ``lto_80``.

    Raises ValueError where the section is not as its own sizes say.
    """
    containers = _bounded(_containers(stream, start, start + size))
    return set(_bounded(name for first, end in containers for name in _entries(stream, first, end)))


def _bounded(rows: Iterable[Row]) -> Iterator[Row]:
    """Pass rows on; refuse a file that is made to keep its reader busy."""
    for number, row in enumerate(rows):
        if number == MOST:
            raise ValueError(f"its fat binaries have more than {MOST:,} parts")
        yield row


def _containers(stream: IO[bytes], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Return where the entries of each container start and end."""
    while (start := _next(stream, start, end)) < end:
        _, version, header, length = _CONTAINER.unpack(_read(stream, start, end, _CONTAINER.size))
        first, start = start + header, start + header + length
        if version != 1 or header < _CONTAINER.size or start > end:
            raise ValueError(
                f"the fat binary before {first:#x} is damaged, or of a version that is not known"
            )
        yield first, start


def _next(stream: IO[bytes], position: int, end: int) -> int:
    """Return where the next container starts, `end` if there is none; zeros lie between them."""
    while position < end:
        stream.seek(position)
        window = stream.read(min(_WINDOW, end - position))
        if (there := window.find(_MAGIC)) >= 0:
            return position + there
        if len(window) < len(_MAGIC):
            break
        # The magic may lie across the border of two windows.
        position += max(len(window) - len(_MAGIC) + 1, 1)
    return end


def _entries(stream: IO[bytes], position: int, end: int) -> Iterator[str]:
    """Name what each entry of a container is for."""
    while position < end:
        kind, _, header, size, *_, number, flags = _ENTRY.unpack(
            _read(stream, position, end, _ENTRY.size)
        )
        if header < _ENTRY.size:
            raise ValueError(f"the entry at {position:#x} of a fat binary is damaged")
        suffix = "a" if flags & _ACCELERATED else "f" if flags & _FAMILY else ""
        yield f"{_PREFIXES.get(kind, f'kind {kind} for ')}{number}{suffix}"
        position += header + size


def _read(stream: IO[bytes], position: int, end: int, size: int) -> bytes:
    """Read exactly `size` bytes that have to lie before `end`."""
    stream.seek(position)
    content = stream.read(size) if position + size <= end else b""
    if len(content) < size:
        raise ValueError(f"the fat binary at {position:#x} ends too early")
    return content
