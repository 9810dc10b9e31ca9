"""Shared libraries that tests make: compiled, or put together by hand as linkers write them."""

import struct
import subprocess
from pathlib import Path

from tests.making import make_file

X86_64, ARM64 = 0x01000007, 0x0100000C
"""Machines, as a Mach-O file names them."""


def compile_library(path: Path, source: str, *options: str, compiler: str = "g++") -> Path:
    """Compile a library; its bytes do not depend on where its path is, which is returned."""
    code = make_file(path.with_suffix(".cc" if "+" in compiler else ".c"), source)
    command = (compiler, "-shared", "-fPIC", "-o", path.name, code.name, *options)
    subprocess.run(command, cwd=path.parent, check=True)
    return path


def fat_binary(*codes: tuple[int, int, int]) -> bytes:
    """Return a container as nvcc writes it; each entry is kind, architecture and flags."""
    entries = b""
    for kind, number, flags in codes:
        fields = (kind, 0x101, 64, 24, 24, 0, 0, 9, number, 0, 0, 0x11 | flags, 0, 0)
        entries += struct.pack("<HHIQIIHHIIIQQQ", *fields) + bytes(24)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def macho(machine: int, *commands: bytes) -> bytes:
    """Return a library for macOS that has nothing but load commands."""
    content = b"".join(commands)
    head = struct.pack("<6I4x", machine, 0, 6, len(commands), len(content), 0)
    return b"\xcf\xfa\xed\xfe" + head + content


def load_command(kind: int, path: str, *fields: int) -> bytes:
    """Return a load command that holds a path behind some numbers."""
    start = 12 + 4 * len(fields)
    size = -(-(start + len(path.encode()) + 1) // 8) * 8
    head = struct.pack(f"<{3 + len(fields)}I", kind, size, start, *fields)
    return (head + path.encode()).ljust(size, b"\0")


def universal(*parts: tuple[int, int, int]) -> bytes:
    """Return the head of a universal library: machine, start and size of each part."""
    table = b"".join(struct.pack(">5I", machine, 3, *place, 12) for machine, *place in parts)
    return b"\xca\xfe\xba\xbe" + struct.pack(">I", len(parts)) + table
