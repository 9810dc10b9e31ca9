from pathlib import Path

from tests.making import Read

from tfwright.build import page as build_page
from tfwright.build.reproduce import Reproduction
from tfwright.terminal.answer import json_value
from tfwright.wheel import page
from tfwright.wheel.compare.comparison import Comparison, Difference, Side

SIDES = Side("a.whl", "0" * 64, 10, 2, 20), Side("b.whl", "1" * 64, 11, 2, 21)


def test_files_that_differ_alike_are_told_once(out: Read) -> None:
    alike = tuple(
        Difference("code", f"{number}.so", "differs in .text", (".text: 1 of 2 bytes differ",))
        for number in range(30)
    )
    page.show_comparison(Comparison(*SIDES, differences=alike))
    assert out().splitlines()[4:] == [
        "code: 30 files",
        "  0.so (and 29 more files, alike): differs in .text",
        "      .text: 1 of 2 bytes differ",
    ]


def test_no_more_of_a_group_is_told_than_is_read_and_all_of_it_to_machines(out: Read) -> None:
    many = tuple(
        Difference("other", f"{number}.txt", f"{number} bytes differ")
        for number in range(page.MOST + 3)
    )
    page.show_comparison(Comparison(*SIDES, differences=many))
    assert out().endswith("  and 3 more differences; --json lists all\n")
    assert len(json_value(Comparison(*SIDES, differences=many))["differences"]) == len(many)


def test_the_same_wheels_are_said_to_be_so_with_their_digest(out: Read) -> None:
    page.show_comparison(Comparison(SIDES[0], SIDES[0]))
    assert out() == f"the same 10 bytes, sha256 {'0' * 64}\n"


def test_a_wheel_that_was_rebuilt_to_the_same_bytes_is_reproduced(out: Read) -> None:
    same = Reproduction(Path("a.whl"), Path("b.whl"), Comparison(SIDES[0], SIDES[0]))
    build_page.show_reproduction(same)
    assert out() == (f"reproduced: a.whl is the same 10 bytes, sha256 {'0' * 64}\n")


def test_a_wheel_that_was_rebuilt_to_other_bytes_is_shown_with_the_causes(out: Read) -> None:
    apart = (Difference("other", "a.txt", "1 byte differs"),)
    compared, why = Comparison(*SIDES, differences=apart), ("The host has another compiler",)
    build_page.show_reproduction(Reproduction(Path("a.whl"), Path("b.whl"), compared, why))
    shown = out()
    assert shown.startswith("not reproduced: a.whl (first), b.whl (second)\n")
    assert shown.endswith("why\n  The host has another compiler\n")
