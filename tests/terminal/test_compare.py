import json

import pytest

from tfwright.terminal import compare as page
from tfwright.wheel.compare.comparison import Comparison, Side
from tfwright.wheel.compare.difference import Difference

SIDES = Side("a.whl", "0" * 64, 10, 2, 20), Side("b.whl", "1" * 64, 11, 2, 21)


def test_files_that_differ_alike_are_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    alike = tuple(
        Difference(
            "code",
            f"{number}.so",
            "differs in .text",
            (".text: 1 of 2 bytes differ",),
        )
        for number in range(30)
    )
    page.show_comparison(Comparison(*SIDES, differences=alike), as_json=False)
    assert capsys.readouterr().out.splitlines()[4:] == [
        "code: 30 files",
        "  0.so (and 29 more files, alike): differs in .text",
        "      .text: 1 of 2 bytes differ",
    ]


def test_no_more_of_a_group_is_told_than_is_read_and_all_of_it_to_machines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    many = tuple(
        Difference("other", f"{number}.txt", f"{number} bytes differ")
        for number in range(page.MOST + 3)
    )
    page.show_comparison(Comparison(*SIDES, differences=many), as_json=False)
    assert capsys.readouterr().out.endswith(
        "  and 3 more differences; --json lists all\n"
    )
    page.show_comparison(Comparison(*SIDES, differences=many), as_json=True)
    assert len(json.loads(capsys.readouterr().out)["differences"]) == len(many)


def test_the_same_wheels_are_said_to_be_so_with_their_digest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page.show_comparison(Comparison(SIDES[0], SIDES[0]), as_json=False)
    assert capsys.readouterr().out == f"the same 10 bytes, sha256 {'0' * 64}\n"
