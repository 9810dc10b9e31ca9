"""What each command does with options, answers and errors."""

import json
import os
from collections.abc import Callable, Iterator

import pytest
from invoke import Collection, Context
from invoke.program import Program
from tests.failing import fails
from tests.making import Read

from tfwright import options, tasks
from tfwright.errors import Evidence, HostError, RecipeError
from tfwright.options import JSON, RECIPE, task
from tfwright.terminal.answer import Answer, Shown


@task(help=JSON | RECIPE, needs={"recipe": "big"}, resumes=("big", "fast", "recipe"))
def trial(
    _: Context,
    big: bool = False,  # noqa: FBT001, FBT002 invoke makes options of parameters
    fast: bool = True,  # noqa: FBT001, FBT002 the same
    recipe: str = "demo",
) -> Iterator[Shown]:
    """Show something, and fail for some recipes."""
    if recipe == "none":
        raise HostError("no gcc", remedy="Buy one.", evidence=Evidence(where="x:1", status=2))
    if recipe == "stopped":
        raise KeyboardInterrupt
    if recipe == "silent":
        return
    yield Answer({"big": big, "fast": fast}, print, status=7)
    if recipe == "late":
        raise HostError("no disk", remedy="Buy one.")


RunTrial = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run_trial(capsys: pytest.CaptureFixture[str]) -> RunTrial:
    """Return what types the command: its exit status and what it printed."""

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            Program(namespace=Collection(trial)).run(["invoke", "trial", *words])
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


def test_an_answer_is_a_page_for_people_and_a_document_for_machines(run_trial: RunTrial) -> None:
    assert run_trial("--no-fast") == (7, "{'big': False, 'fast': False}\n", "")
    status, out, _ = run_trial("--big", "--json")
    assert (status, json.loads(out)) == (7, {"big": True, "fast": True})


def test_an_error_is_one_document_too_beside_its_message(run_trial: RunTrial) -> None:
    status, out, err = run_trial("--big", "--recipe", "none", "--json")
    fault = json.loads(out)
    assert (status, fault["exit_status"], fault["what"]) == (3, 3, "no gcc")
    assert fault["evidence"]["where"] == "x:1"
    assert "no gcc" in err
    assert run_trial("--big", "-r", "none")[1] == ""


def test_an_error_behind_an_answer_leaves_that_the_only_document(run_trial: RunTrial) -> None:
    status, out, err = run_trial("--big", "--recipe", "late", "--json")
    assert (status, json.loads(out)["big"]) == (3, True)
    assert "no disk" in err


def test_a_command_without_an_answer_prints_an_empty_document(out: Read) -> None:
    words = ["invoke", "trial", "--big", "-r", "silent", "--json"]
    Program(namespace=Collection(trial)).run(words, exit=False)
    assert json.loads(out()) == {}


def test_a_command_that_is_interrupted_says_what_goes_on_with_it(run_trial: RunTrial) -> None:
    again = "invoke trial --big --no-fast --recipe stopped"
    status, out, err = run_trial("-r", "stopped", "--big", "--no-fast", "--json")
    assert (status, json.loads(out)["resume"]) == (130, again)
    assert again in err


def test_an_option_without_the_one_that_it_needs_is_refused(run_trial: RunTrial) -> None:
    status, _, err = run_trial("--recipe", "demo-cuda")
    assert status == 2
    assert "--recipe does nothing without --big" in err


def test_a_dry_mode_of_the_environment_runs_nothing(
    run_trial: RunTrial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INVOKE_RUN_DRY", "1")
    status, out, err = run_trial()
    assert (status, out) == (2, "")
    assert "INVOKE_RUN_DRY" in err


def test_options_are_declared_with_what_they_need_and_the_same_letters_everywhere() -> None:
    letters: dict[str, set[str]] = {}
    for name, command in tasks.collection().tasks.items():
        arguments = {word.name: word for word in command.get_arguments()}
        known = {name.replace("_", "-") for name in arguments}
        assert known >= {*command.needs, *command.needs.values()}, name
        assert {*arguments} >= {*command.resumes}, name
        for word in arguments.values():
            assert word.help, (name, word.name)
            for letter in (each for each in word.names if len(each) == 1):
                letters.setdefault(letter, set()).add(word.names[0])
    assert letters == {letter: {flag} for flag, letter in options.SHORT.items()}


def test_two_options_of_which_one_would_be_followed_are_refused() -> None:
    options.check_exclusive(gc=True, links=False)
    with fails(RecipeError, "--dry-run", "--install"):
        options.check_exclusive(dry_run=True, install="user")


def test_a_file_is_none_without_a_name_and_no_option() -> None:
    assert str(options.required_file("-", "diagnose")) == "-"
    for given in ("", "--jsno"):
        with fails(RecipeError, "invoke diagnose", given):
            options.required_file(given, "diagnose")


@pytest.mark.parametrize(
    ("given", "kept"), [(0o777, 0o077), (0o000, 0o022), (0o027, 0o027), (0o700, 0o022)]
)
def test_what_is_written_can_be_read_by_its_owner_and_written_by_nobody_else(
    given: int, kept: int
) -> None:
    before = os.umask(given)
    try:
        with options.reporting_failures():
            found = os.umask(0o022)
    finally:
        os.umask(before)
    assert found == kept
