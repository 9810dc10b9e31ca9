from collections.abc import Sequence

from tfwright.wheel.compare import symbols as comparison_symbols
from tfwright.wheel.compare.symbols import LibrarySymbols, SymbolRow

Function = tuple[str, int, int]


def symbols(*functions: Function, exported: Sequence[str] = ()) -> LibrarySymbols:
    """Return symbols by name, address and size, of a file that holds nothing but their names."""
    made = LibrarySymbols(
        b"".join(name.encode() + b"\0" for name, _, _ in functions)
    )
    place = 0
    for name, address, size in functions:
        row = SymbolRow(hash(name), place, address, size)
        made.functions.add(row)
        if name in exported:
            made.exports.add(row)
        place += len(name) + 1
    return made


def test_an_address_is_in_the_function_that_begins_before_it_and_has_not_ended() -> (
    None
):
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
    one = symbols(
        ("static", 1, 5), ("static", 9, 6), ("sole", 20, 7), ("same", 30, 8)
    )
    two = symbols(("static", 1, 6), ("sole", 20, 9), ("same", 40, 8))
    assert list(comparison_symbols.resized(one, two)) == [
        "functions of another size (1): sole (7 bytes, then 9)"
    ]


def test_the_functions_that_changed_most_are_named_and_the_others_counted() -> (
    None
):
    one, two = (
        symbols(
            *(
                (f"f{number}", 100 * number, 10 + number * grown)
                for number in range(8)
            )
        )
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
