import struct

import pytest

from tfwright.wheel.binary import macho
from tfwright.wheel.binary.macho import MachO

X86_64, ARM64 = 0x01000007, 0x0100000C


def text(kind: int, path: str, words: int = 1) -> bytes:
    """Return a load command with a path behind `words` words."""
    body = path.encode() + b"\0"
    body += bytes(-len(body) % 8)
    start = 8 + 4 * words
    return (
        struct.pack(
            f"<{2 + words}I", kind, start + len(body), start, *[0] * (words - 1)
        )
        + body
    )


def thin(machine: int, *commands: bytes) -> bytes:
    content = b"".join(commands)
    return (
        b"\xcf\xfa\xed\xfe"
        + struct.pack("<6I4x", machine, 0, 6, len(commands), len(content), 0)
        + content
    )


LIBRARY = thin(
    X86_64,
    text(0xD, "@rpath/libtensorflow_framework.so", 4),
    struct.pack("<4I", 0x24, 16, 10 << 16 | 12 << 8, 0),
    text(0xC, "@rpath/libcudart.9.2.dylib", 4),
    text(0x80000018, "/usr/lib/libc++.1.dylib", 4),
    text(0x8000001C, "@loader_path/.."),
)


def test_a_library_says_what_it_needs_and_where_it_looks() -> None:
    read = macho.read(LIBRARY)
    needed = ("@rpath/libcudart.9.2.dylib", "/usr/lib/libc++.1.dylib")
    assert read == (
        MachO(
            "x86_64",
            "@rpath/libtensorflow_framework.so",
            needed,
            ("@loader_path/..",),
            "10.12",
        ),
    )


def test_the_newer_command_for_the_oldest_macos_is_read_too() -> None:
    library = thin(
        ARM64, struct.pack("<6I", 0x32, 24, 1, 11 << 16 | 3 << 8 | 1, 0, 0)
    )
    assert macho.read(library)[0].minimum == "11.3.1"


def test_a_universal_library_is_read_once_for_each_machine() -> None:
    other = thin(ARM64)
    head = b"\xca\xfe\xba\xbe" + struct.pack(">I", 2)
    tables = struct.pack(">5I", X86_64, 3, 48, len(LIBRARY), 3) + struct.pack(
        ">5I", ARM64, 0, 48 + len(LIBRARY), len(other), 3
    )
    assert [
        part.machine for part in macho.read(head + tables + LIBRARY + other)
    ] == [
        "x86_64",
        "arm64",
    ]


def test_a_big_endian_32_bit_library_is_read() -> None:
    library = b"\xfe\xed\xfa\xce" + struct.pack(">6I", 7, 0, 6, 0, 0, 0)
    assert macho.read(library)[0].machine == "i386"


@pytest.mark.parametrize(
    "content",
    [
        b"\xca\xfe\xba\xbe\x00\x00\x00\x34",  # a Java class
        b"\xca\xfe\xba\xbe"
        + struct.pack(
            ">6I", 1, X86_64, 3, 0, 100, 3
        ),  # a slice that is its own file
        b"\xcf\xfa\xed\xfe"
        + struct.pack("<6I4x", X86_64, 0, 6, 1, 0xFFFFFFFF, 0),
        thin(X86_64, struct.pack("<2I", 0xC, 0)),
        thin(X86_64, struct.pack("<2I", 0xC, 500)),
        LIBRARY[:100],
        LIBRARY[:20],
    ],
)
def test_a_lying_or_truncated_file_is_refused(content: bytes) -> None:
    with pytest.raises((ValueError, struct.error)):
        macho.read(content)
