"""What `invoke cache --why` prints: each difference once, however many actions it is in."""

import pytest

from tfwright.commands.cache import ActionChange, CacheComparison
from tfwright.terminal.cache import show_why


def changed(name: str, what: str) -> ActionChange:
    return ActionChange("CppCompile", name, what, follows=False)


def test_a_difference_of_many_actions_is_printed_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    variable = "variable MODE: unset became 1"
    changes = [changed(f"{name}.o", variable) for name in "abcdef"]
    changes.append(changed("g.o", "input g.cc: 1 became 2"))
    show_why(CacheComparison(tuple(changes), 0, 0, 0, ()), as_json=False)
    out = capsys.readouterr().out
    assert out.count(variable) == 1
    assert "CppCompile a.o, and 5 other actions" in out
    assert "CppCompile g.o\n  input g.cc: 1 became 2" in out


def test_no_more_differences_are_listed_than_a_screen_holds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    changes = [changed(f"{n}.o", f"input {n}.cc: 1 became 2") for n in range(25)]
    show_why(CacheComparison(tuple(changes), 0, 0, 0, ()), as_json=False)
    out = capsys.readouterr().out
    assert out.count("became") == 20
    assert "and 5 more differences" in out
