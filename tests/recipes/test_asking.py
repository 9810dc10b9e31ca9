"""What `new` and `record` ask a person, and what they print."""

import io
from pathlib import Path

import pytest
from tests.making import Typed

from tfwright.configure.catalogue import Prompt
from tfwright.recipes import page
from tfwright.recipes.recording import RecordedQuestion
from tfwright.recipes.session import RecordedDialogue
from tfwright.recipes.writing import NewRecipe

NEW = Path("new.toml")
YES_NO = Prompt(variable="TF_NEED_X", support="X")
TEXT = Prompt(variable="TF_FLAGS", question="Flags", kind="text")
QUESTION = RecordedQuestion("TF_X", "Use X? [y/N]: ", True, "n", known=False)  # noqa: FBT003


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
    assert page.ask_answer(YES_NO, "false") == "false"


@pytest.mark.parametrize(
    ("prompt", "typed", "answer"),
    [
        (YES_NO, "Yes\n", "true"),
        (YES_NO, "n\n", "false"),
        (YES_NO, "\n", "false"),
        (YES_NO, "", "false"),
        (TEXT, 'a "b"\n', '"a \\"b\\""'),
        (TEXT, "\x1b[A\nb\n", '"b"'),
    ],
)
def test_an_answer_is_taken_in_the_form_of_toml(
    prompt: Prompt, typed: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Typed(typed))
    assert page.ask_answer(prompt, "false") == answer


@pytest.mark.parametrize(("default", "choices"), [("true", "[Y/n]"), ("false", "[y/N]")])
def test_a_question_shows_what_can_be_typed(
    default: str, choices: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Typed("\n"))
    assert page.ask_answer(YES_NO, default) == default
    assert capsys.readouterr().err.rstrip().endswith(choices)


def test_an_answer_that_is_neither_yes_nor_no_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Typed("perhaps\ny\n"))
    assert page.ask_answer(YES_NO, "false") == "true"
    assert "'perhaps' is neither yes nor no" in capsys.readouterr().err


def test_a_question_without_a_terminal_is_answered_with_its_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert page.ask_question(QUESTION) == ""
    assert "answered with its default, n: no terminal" in capsys.readouterr().err


def test_an_answer_with_control_characters_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Typed("\x1b[A\ny\n"))
    assert page.ask_question(QUESTION) == "y"
    assert "cannot be printed" in capsys.readouterr().err


def test_what_was_recorded_is_listed_by_its_place_in_the_recipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = Path("mine.toml")
    page.show_recorded(RecordedDialogue(path, (QUESTION,), ("TF_X",), ("build --x",)), "mine")
    shown = capsys.readouterr()
    assert "[[configure.prompts]] TF_X" in shown.err
    assert "[configure.answers] TF_X" in shown.err
    assert "[configure.bazelrc] build --x" in shown.err
    assert shown.out == "mine.toml\n"


def test_a_recipe_that_lacks_nothing_says_that_nothing_was_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page.show_recorded(RecordedDialogue(Path("mine.toml"), (), (), ()), "mine")
    assert "nothing was written" in capsys.readouterr().err
