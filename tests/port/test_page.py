"""The page of port, pin and new."""

import io
from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.configure.catalogue import Prompt
from tfwright.lock.packages import Pinned
from tfwright.port import page
from tfwright.port.porting import Port
from tfwright.port.target import PortedPin
from tfwright.recipes.writing import NewRecipe

NEW = Path("new.toml")
YES_NO = Prompt(variable="TF_NEED_X", support="X")
TEXT = Prompt(variable="TF_FLAGS", question="Flags", kind="text")


class Typed(io.StringIO):
    """What a person types on a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_port_shows_what_must_change_first_and_counts_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pins = (
        PortedPin("patch", "0001-a.patch", "fits", "applies"),
        PortedPin("tool", "Bazel", "change", "1.14 wants 0.24.1"),
        PortedPin("test", "smoke", "look", "renamed"),
    )
    page.show_port(Port(NEW, "1" * 40, pins))
    shown = capsys.readouterr()
    states = [line.split()[0] for line in shown.out.splitlines()[:3]]
    assert states == ["change", "look", "fits"]
    assert "1 pin must change before it can be built" in shown.err
    assert "Then: invoke build --recipe new.toml --until configure" in shown.err
    assert shown.out.splitlines()[-1] == "new.toml"


def test_a_port_in_which_all_fits_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    page.show_port(Port(NEW, "1" * 40, ()))
    assert "Nothing has to change" in capsys.readouterr().err


def test_what_was_pinned_is_listed_with_the_checksum_of_bazel(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lists: dict[str, tuple[str, ...]] = {"host.requirements": ("numpy==1.14.5", "six==1.11.0")}
    changes = ("numpy 1.13.3 -> 1.14.5",)
    page.show_pinned(Pinned(NEW, lists, changes, "ab" * 32))
    shown = capsys.readouterr()
    assert "host.requirements: 2 packages" in shown.err
    assert "numpy 1.13.3 -> 1.14.5" in shown.err
    assert f"bazel.sha256: {'ab' * 32}" in shown.err
    assert shown.out == "new.toml\n"


def test_the_recipes_of_the_axes_are_named_to_be_pinned_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_file(tmp_path / "mine.toml", '[axes]\npython = ["3.13"]\n')
    page.show_pinned(Pinned(path, {}, (), ""))
    assert f"invoke pin --recipe {tmp_path}/mine-py313.toml\n" in capsys.readouterr().err
    page.show_pinned(Pinned(tmp_path / "mine-py313.toml", {}, (), ""))
    assert not capsys.readouterr().err


def test_a_new_recipe_names_open_decisions_and_the_commands_in_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = NewRecipe(NEW, ("which Bazel",), ("numpy",))
    page.show_new(made)
    shown = capsys.readouterr()
    assert "decide: which Bazel" in shown.err
    commands = [
        line.split()[-4:-2]
        for line in shown.err.splitlines()
        if "invoke" in line and "--recipe" in line
    ]
    assert "Then: invoke pin --recipe new.toml" in shown.err
    assert shown.err.index("invoke lint") < shown.err.index("invoke build")
    assert len(commands) == 3
    assert shown.out == "new.toml\n"


def test_a_copy_has_its_pins_and_is_not_to_be_pinned(capsys: pytest.CaptureFixture[str]) -> None:
    page.show_new(NewRecipe(NEW, ()))
    shown = capsys.readouterr().err
    assert "invoke pin" not in shown
    assert "Then: invoke lint --recipe new.toml" in shown


def test_without_a_terminal_the_default_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert page.ask(YES_NO, "false") == "false"


@pytest.mark.parametrize(
    ("prompt", "typed", "answer"),
    [
        (YES_NO, "Yes\n", "true"),
        (YES_NO, "n\n", "false"),
        (YES_NO, "\n", "false"),
        (YES_NO, "", "false"),
        (TEXT, 'a "b"\n', '"a \\"b\\""'),
    ],
)
def test_an_answer_is_taken_in_the_form_of_toml(
    prompt: Prompt, typed: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Typed(typed))
    assert page.ask(prompt, "false") == answer


@pytest.mark.parametrize(("default", "choices"), [("true", "[Y/n]"), ("false", "[y/N]")])
def test_a_question_shows_what_can_be_typed(
    default: str, choices: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Typed("\n"))
    assert page.ask(YES_NO, default) == default
    assert capsys.readouterr().err.rstrip().endswith(choices)


def test_an_answer_that_is_neither_yes_nor_no_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Typed("perhaps\ny\n"))
    assert page.ask(YES_NO, "false") == "true"
    assert "'perhaps' is neither yes nor no" in capsys.readouterr().err
