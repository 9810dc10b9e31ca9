"""GPU code inside a library: the fat binaries that nvcc puts into it.

A fat binary is a container: a row of entries, each a header and code for one architecture. The
header says kind and architecture also where the code is compressed (LZ4 first, zstd since CUDA
12.8), so nothing is unpacked. NVIDIA does not document the format; what is here agrees with what
cuobjdump prints.

CUDA's runtime is given the containers by address, and does not look at sections. So the whole file
is searched for them, and it does not matter what the sections say.
"""

import re
import struct
from collections.abc import Iterator, Mapping

from tfwright.wheel.binary.elf_image import Content

_MAGIC = struct.pack("<I", 0xBA55ED50)
_CONTAINER = struct.Struct("<4sHHQ")
"""Magic, version, size of this header, size of the entries."""
_ENTRY = struct.Struct("<HHIQIIHHI8xQ")
"""Kind, version, header's size, code's size, compressed size, options, minor, major,
architecture, flags."""
_PREFIXES = {1: "compute_", 2: "sm_", 8: "lto_"}
"""By kind: PTX, which the driver compiles; SASS, which runs as it is; LTO-IR, for a linker."""
_ACCELERATED, _FAMILY = 1 << 20, 1 << 21
"""Flags of code for one architecture only (``sm_90a``) and for its family (``sm_100f``)."""
_VERSION = 1
MOST = 1_000_000
"""Parts that a library may have; the largest library of NVIDIA's own has some thousand."""


def architectures(content: Content, start: int = 0, end: int | None = None) -> dict[str, int]:
    """Return what the fat binaries in a file, or in a part of it, hold code for.

    The keys are named as by nvcc, SASS first, oldest first: ``sm_70`` (SASS), ``compute_70`` (PTX),
    ``lto_80`` (LTO-IR). The values are the bytes that the code takes in the file, compressed where
    nvcc compressed it. Raises ValueError for a fat binary that does not hold what its own sizes
    say.
    """
    # Counted over the whole file: many small containers keep a reader as busy as a large one.
    found, parts = dict[str, int](), 0
    end = len(content) if end is None else end
    for first, last in _containers(content, start, end):
        parts += 1
        for name, size in _entries(content, first, last):
            found[name] = found.get(name, 0) + size
            parts += 1
            if parts > MOST:
                break
        if parts > MOST:
            raise ValueError(f"its fat binaries have more than {MOST:,} parts")
    return sort_architectures(found)


def sort_architectures(sizes: Mapping[str, int]) -> dict[str, int]:
    """Return GPU code in the order of its architectures."""

    def age(name: str) -> tuple[bool, str, list[int], str]:
        kind = name.partition("_")[0]
        return kind != "sm", kind, [int(digits) for digits in re.findall(r"\d+", name)], name

    return {name: sizes[name] for name in sorted(sizes, key=age)}


def _containers(content: Content, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Return where the entries of each container start and end."""
    while (start := content.find(_MAGIC, start, end)) >= 0:
        if start + _CONTAINER.size > end:
            return
        _, version, header, length = _CONTAINER.unpack_from(content, start)
        first = start + header
        if version != _VERSION or header != _CONTAINER.size:
            # A program that compares with the magic has these bytes too: CUDA's own runtime.
            start += 1
            continue
        if first + length > end:
            raise ValueError(f"the fat binary at {start:#x} ends too early")
        yield first, first + length
        # At least the header: an empty container must not be found again.
        start = first + length


def _entries(content: Content, position: int, end: int) -> Iterator[tuple[str, int]]:
    """Yield what each entry of a container is for, and the bytes that it takes."""
    while position < end:
        if position + _ENTRY.size > end:
            raise ValueError(f"the fat binary at {position:#x} ends too early")
        # The number of the architecture is what nvcc calls it: 70, 120.
        kind, _, header, size, *_, number, flags = _ENTRY.unpack_from(content, position)
        if header < _ENTRY.size:
            raise ValueError(f"the entry at {position:#x} of a fat binary is damaged")
        suffix = "a" if flags & _ACCELERATED else "f" if flags & _FAMILY else ""
        prefix = _PREFIXES.get(kind, f"kind {kind} for ")
        following = position + header + size
        # With its header, so that the sum is what the containers take. The last entry of a
        # hostile file may claim more than its container has.
        yield f"{prefix}{number}{suffix}", min(following, end) - position
        position = following
