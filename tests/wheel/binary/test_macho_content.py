import struct
from pathlib import Path

import pytest

from tfwright.wheel.binary import elf_symbols, macho_content
from tfwright.wheel.binary.macho import MachO

LIBRARY = (Path(__file__).parents[1] / "corpus/macho-symbols").read_bytes()
"""For x86-64, with two functions of TensorFlow's, the second with FMA, and a fat binary for sm_30
and compute_52."""


def read(content: bytes) -> MachO:
    (part,) = macho_content.read(content)
    return part


def test_gpu_code_symbols_and_cpu_of_a_macos_library_are_read() -> None:
    found = read(LIBRARY)
    assert found.architectures == ("sm_30", "compute_52")
    assert (found.symbols.exports, found.symbols.tensorflow) == (2, 2)
    assert found.cpu is not None
    assert [(use.extension, use.function) for use in found.cpu.needs] == [
        ("fma", "__ZN10tensorflow1gEv")
    ]


def test_private_symbols_and_those_of_debuggers_are_no_exports() -> None:
    start, size = struct.unpack_from("<II", LIBRARY, 32 + 72 + 160 + 8)
    assert size == 3
    content = bytearray(LIBRARY)
    content[start + 4] |= 0x10
    content[start + 16 + 4] |= 0x20
    assert read(bytes(content)).symbols.exports == 0


def test_a_library_for_arm_has_no_level_of_the_cpu() -> None:
    content = LIBRARY[:4] + struct.pack("<I", 0x0100000C) + LIBRARY[8:]
    assert (read(content).machine, read(content).cpu) == ("arm64", None)


def test_a_library_in_the_other_byte_order_is_left_as_its_commands_say_it() -> None:
    library = b"\xfe\xed\xfa\xce" + struct.pack(">6I", 18, 0, 6, 0, 0, 0)
    assert read(library).symbols.exports == 0


@pytest.mark.parametrize(("field", "message"), [(12, "says that it has"), (20, "says that it has")])
def test_a_table_that_is_larger_than_the_file_is_refused(field: int, message: str) -> None:
    content = bytearray(LIBRARY)
    struct.pack_into("<I", content, 32 + 72 + 160 + field, 0x7FFFFFFF)
    with pytest.raises(ValueError, match=message):
        read(bytes(content))


def test_a_table_that_is_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="ends after the file"):
        read(LIBRARY[:-60])


def changed(place: int, layout: str, number: int) -> bytes:
    content = bytearray(LIBRARY)
    struct.pack_into(layout, content, place, number)
    return bytes(content)


SEGMENT, SECTION = 32, 32 + 72
"""Where the load command of __TEXT is, and in it the section with the code."""
(SYMBOLS,) = struct.unpack_from("<I", LIBRARY, SECTION + 160 + 8)


def test_a_symbol_whose_name_is_outside_its_table_is_refused() -> None:
    with pytest.raises(ValueError, match="outside its table of names"):
        read(changed(SYMBOLS, "<I", 0x7FFFFFFF))


def test_names_that_are_the_same_bytes_many_times_over_are_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(elf_symbols, "OVERLAP", -(2**20))
    with pytest.raises(ValueError, match="the same bytes many times over"):
        read(LIBRARY)


def test_code_that_is_said_to_end_after_the_file_is_refused() -> None:
    with pytest.raises(ValueError, match="the file ends before them"):
        read(changed(SECTION + 40, "<Q", 2**40))


def test_a_library_without_code_has_no_level_of_the_cpu() -> None:
    content = LIBRARY.replace(b"__text", b"__data")
    assert read(content).cpu is None
    assert read(content).symbols.exports == 2


def test_a_symbol_outside_the_code_is_not_a_function() -> None:
    both, one = read(LIBRARY).cpu, read(changed(SYMBOLS + 8, "<Q", 0x9000)).cpu
    assert both is not None
    assert one is not None
    assert (both.vector, one.vector) == (2, 1)
