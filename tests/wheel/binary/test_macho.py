import struct
from pathlib import Path

import pytest
from tests.libraries import ARM64, X86_64, load_command, universal
from tests.libraries import macho as thin

from tfwright.wheel.binary import elf_image, macho
from tfwright.wheel.binary.elf import LibraryPart, VersionRequirement

LIBRARY = thin(
    X86_64,
    load_command(0xD, "@rpath/libtensorflow_framework.so", 0, 0, 0),
    struct.pack("<4I", 0x24, 16, 10 << 16 | 12 << 8, 0),
    load_command(0xC, "@rpath/libcudart.9.2.dylib", 0, 0, 0),
    load_command(0x80000018, "/usr/lib/libc++.1.dylib", 0, 0, 0),
    load_command(0x8000001C, "@loader_path/.."),
)


def test_a_library_says_what_it_needs_and_where_it_looks() -> None:
    read = macho.read(LIBRARY)
    needed = ("@rpath/libcudart.9.2.dylib", "/usr/lib/libc++.1.dylib")
    assert read == (
        LibraryPart(
            system="macOS",
            machine="x86_64",
            needed=needed,
            search=("@loader_path/..",),
            requires={"macOS": VersionRequirement("10.12")},
        ),
    )


def test_the_newer_command_for_the_oldest_macos_is_read_too() -> None:
    library = thin(ARM64, struct.pack("<6I", 0x32, 24, 1, 11 << 16 | 3 << 8 | 1, 0, 0))
    assert macho.read(library)[0].requires["macOS"].version == "11.3.1"


def test_a_universal_library_is_read_once_for_each_machine() -> None:
    other, size = thin(ARM64), len(LIBRARY)
    head = universal((X86_64, 48, size), (ARM64, 48 + size, len(other)))
    assert [part.machine for part in macho.read(head + LIBRARY + other)] == ["x86_64", "arm64"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xca\xfe\xba\xbe\0\0\0\x41", "not a Mach-O file"),
        (bytes(40), "not a Mach-O file"),
        (universal((X86_64, 28, 400)) + LIBRARY, "after the end of the file"),
        (universal((X86_64, 28, 40)) + bytes(40), "at 0x1c there is not a Mach-O file"),
        (universal((X86_64, 48, 9), (ARM64, 52, 9)) + bytes(99), "share the bytes at 0x34"),
        (thin(X86_64, struct.pack("<4I", 0xC, 16, 16, 0)), "beyond the command"),
        (thin(X86_64, struct.pack("<4I", 0xC, 16, 4, 0)), "beyond the command"),
    ],
)
def test_a_layout_that_cannot_be_is_named(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        macho.read(content)


def segment(count: int, *sections: bytes) -> bytes:
    """Return LC_SEGMENT_64 of 64 bytes at 0x1000, which says that it has `count` sections."""
    body = b"".join(sections)
    head = struct.pack(
        "<2I16s4Q4I", 0x19, 72 + len(body), b"__DATA", 0x1000, 64, 0, 64, 7, 7, count, 0
    )
    return head + body


def section(name: bytes, size: int, flags: int) -> bytes:
    return struct.pack("<16s16s2Q8I", name, b"__DATA", 0x1000, size, 8, 0, 0, 0, flags, 0, 0, 0)


def test_sections_without_bytes_in_the_file_are_left_out() -> None:
    zeros, data, empty = (b"__bss", 8, 1), (b"__data", 8, 0), (b"__none", 0, 0)
    library = thin(X86_64, segment(3, *(section(*given) for given in (zeros, data, empty))))
    (part,) = macho.slices(library)
    found = [(section.name, section.number) for section in part.sections()]
    assert found == [("__DATA,__data", 2)]


def test_a_segment_without_sections_is_itself_what_lies_in_the_file() -> None:
    (part,) = macho.slices(thin(X86_64, segment(0)))
    assert [section.name for section in part.sections()] == ["__DATA"]


def test_more_sections_than_a_segment_has_room_for_are_refused() -> None:
    (part,) = macho.slices(thin(X86_64, segment(2, section(b"__data", 8, 0))))
    with pytest.raises(ValueError, match="says that it has 2 sections"):
        list(part.sections())


@pytest.mark.parametrize(
    "content",
    [
        b"\xca\xfe\xba\xbe\x00\x00\x00\x34",  # a Java class
        universal((X86_64, 0, 100)),  # a slice that is its own file
        b"\xcf\xfa\xed\xfe" + struct.pack("<6I4x", X86_64, 0, 6, 1, 0xFFFFFFFF, 0),
        thin(X86_64, struct.pack("<2I", 0xC, 0)),
        thin(X86_64, struct.pack("<2I", 0xC, 500)),
        LIBRARY[:100],
        LIBRARY[:20],
    ],
)
def test_a_lying_or_truncated_file_is_refused(content: bytes) -> None:
    with pytest.raises((ValueError, struct.error)):
        macho.read(content)


WITH_CODE = (Path(__file__).parents[1] / "corpus/macho-symbols").read_bytes()
"""For x86-64, with two functions of TensorFlow's, the second with FMA, and a fat binary for sm_30
and compute_52."""


def read_one(content: bytes) -> LibraryPart:
    (part,) = macho.read(content)
    return part


def test_gpu_code_symbols_and_cpu_of_a_macos_library_are_read() -> None:
    found = read_one(WITH_CODE)
    assert [*found.gpu] == ["sm_30", "compute_52"]
    assert (found.symbols.exports, found.symbols.tensorflow) == (2, 2)
    assert found.cpu is not None
    assert [(use.extension, use.function) for use in found.cpu.needs] == [
        ("fma", "__ZN10tensorflow1gEv")
    ]


SECTION, TABLES = 32 + 72, 32 + 72 + 160
"""Where the section with the code is described, and the tables of symbols."""
SYMBOLS, COUNT = struct.unpack_from("<II", WITH_CODE, TABLES + 8)


def changed(place: int, layout: str, number: int) -> bytes:
    content = bytearray(WITH_CODE)
    struct.pack_into(layout, content, place, number)
    return bytes(content)


def test_private_symbols_and_those_of_debuggers_are_no_exports() -> None:
    assert COUNT == 3
    content = bytearray(WITH_CODE)
    content[SYMBOLS + 4] |= 0x10
    content[SYMBOLS + 16 + 4] |= 0x20
    assert read_one(bytes(content)).symbols.exports == 0


def test_a_library_for_arm_has_no_level_of_the_cpu() -> None:
    found = read_one(changed(4, "<I", ARM64))
    assert (found.machine, found.cpu) == ("arm64", None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (changed(TABLES + 12, "<I", 0x7FFFFFFF), "says that it has"),
        (changed(TABLES + 20, "<I", 0x7FFFFFFF), "says that it has"),
        (WITH_CODE[:-60], "ends after the file"),
        (changed(SYMBOLS, "<I", 0x7FFFFFFF), "outside its table of names"),
        (changed(SECTION + 40, "<Q", 2**40), "the file ends before them"),
    ],
    ids=["a table", "the names", "a cut file", "a name", "the code"],
)
def test_what_leads_out_of_the_file_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_one(content)


def test_names_that_are_the_same_bytes_many_times_over_are_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(elf_image, "OVERLAP", -(2**20))
    with pytest.raises(ValueError, match="the same bytes many times over"):
        read_one(WITH_CODE)


def test_a_library_without_code_has_no_level_of_the_cpu() -> None:
    content = WITH_CODE.replace(b"__text", b"__data")
    assert read_one(content).cpu is None
    assert read_one(content).symbols.exports == 2


def test_a_symbol_outside_the_code_is_not_a_function() -> None:
    counts = []
    for content in (WITH_CODE, changed(SYMBOLS + 8, "<Q", 0x9000)):
        (part,) = macho.slices(content)
        code = part.code()
        assert code is not None
        counts.append(len(code.functions))
    assert counts == [2, 1]
