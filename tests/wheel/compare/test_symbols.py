import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from tfwright.wheel.binary import macho
from tfwright.wheel.compare import symbols as comparison_symbols
from tfwright.wheel.compare.symbols import LibrarySymbols, SymbolRow

Function = tuple[str, int, int]


def symbols(*functions: Function, exported: Sequence[str] = ()) -> LibrarySymbols:
    """Return symbols by name, address and size, of a file that holds nothing but their names."""
    made = LibrarySymbols(b"".join(name.encode() + b"\0" for name, _, _ in functions))
    place = 0
    for name, address, size in functions:
        row = SymbolRow(hash(name), place, address, size)
        made.functions.add(row)
        if name in exported:
            made.exports.add(row)
        place += len(name) + 1
    return made


def test_an_address_is_in_the_function_that_begins_before_it_and_has_not_ended() -> None:
    some = symbols(("late", 0x300, 0), ("early", 0x100, 0x10))
    at = {
        address: some.function_at(address, 0x80)
        for address in (0x90, 0x100, 0x10F, 0x110, 0x300, 0x9999)
    }
    assert at == {
        0x90: "",
        0x100: "early",
        0x10F: "early",
        0x110: "",
        0x300: "late",
        0x9999: "late",
    }
    assert some.function_at(0x210, 0x200) == ""


def test_a_name_is_read_whole_however_long() -> None:
    name = "_ZN" + "x" * 2000
    assert symbols(("first", 1, 1), (name, 2, 1)).function_at(2, 0) == name


def test_functions_that_share_their_name_are_not_compared() -> None:
    one = symbols(("static", 1, 5), ("static", 9, 6), ("sole", 20, 7), ("same", 30, 8))
    two = symbols(("static", 1, 6), ("sole", 20, 9), ("same", 40, 8))
    assert list(comparison_symbols.resized(one, two)) == [
        "functions of another size (1): sole (7 bytes, then 9)"
    ]


def test_the_functions_that_changed_most_are_named_and_the_others_counted() -> None:
    one, two = (
        symbols(*((f"f{number}", 100 * number, 10 + number * grown) for number in range(8)))
        for grown in (0, 1)
    )
    (line,) = comparison_symbols.resized(one, two)
    assert line.startswith(
        "functions of another size (7): f7 (10 bytes, then 17), f6 (10 bytes, then 16)"
    )
    assert "f2" not in line


def test_exports_of_one_library_only_are_counted_and_the_first_named() -> None:
    one = symbols(
        *((f"f{number}", number, 1) for number in range(7)),
        exported=[f"f{number}" for number in range(7)],
    )
    two = symbols(("f0", 0, 1), ("f1", 1, 1), exported=["f0"])
    assert list(comparison_symbols.differences(one, two)) == [
        "exported symbols only in the first (6): f1, f2, f3, f4, f5, and 1 more"
    ]


def test_names_that_are_the_same_bytes_many_times_over_are_given_up() -> None:
    keys = comparison_symbols._Keys(b"x" * 2**18)
    for _ in range(12):
        keys.of(0)
    with pytest.raises(ValueError, match="the same bytes many times over"):
        keys.of(0)


MAC = (Path(__file__).parents[1] / "corpus/macho-symbols").read_bytes()
"""For x86-64, with two functions, of which both are exported."""


def test_symbols_of_a_macos_library_are_read() -> None:
    (part,) = macho.slices(MAC)
    found = comparison_symbols.of_macho(MAC, part)
    names = [found.name(place) for place in found.exports.places]
    assert names == ["__ZN10tensorflow1fEv", "__ZN10tensorflow1gEv"]
    start = found.functions.addresses[1]
    assert found.function_at(start + 1, start) == "__ZN10tensorflow1gEv"


def test_private_and_debuggers_symbols_of_a_macos_library_are_no_exports() -> None:
    content = bytearray(MAC)
    (place,) = struct.unpack_from("<I", MAC, 32 + 72 + 160 + 8)
    content[place + 4] &= ~1
    content[place + 16 + 4] |= 0x20
    (part,) = macho.slices(content)
    found = comparison_symbols.of_macho(content, part)
    assert (len(found.functions.addresses), len(found.exports.addresses)) == (1, 0)


def test_a_macos_library_without_a_table_has_no_symbols() -> None:
    content = b"\xcf\xfa\xed\xfe" + struct.pack("<6I4x", 0x01000007, 3, 6, 0, 0, 0)
    (part,) = macho.slices(content)
    assert not comparison_symbols.of_macho(content, part).functions.addresses
