"""What `invoke bisect` prints of its result."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.making import Read
from tests.nightly.fake import a_build

from tfwright.bisect import page
from tfwright.bisect.bisection import Bisection, BisectOutcome
from tfwright.bisect.steps import BisectStep
from tfwright.bisect.trial import Symptom, TrialResult
from tfwright.documents import recipe
from tfwright.nightly.builds import KeptInputs
from tfwright.terminal.answer import json_value

INPUTS = KeptInputs(recipe.read("demo"))
STEPS = tuple(BisectStep(f"commit {digit * 12} Note", INPUTS, digit * 40) for digit in "abc")
GOOD = TrialResult("good")
FAILED = TrialResult("bad", "compile", "error: no member named x")


def wanted(**changes: tuple[str, str]) -> Bisection:
    return Bisection(
        a_build(id="monday"),
        a_build(id="tuesday"),
        INPUTS,
        STEPS,
        Symptom("compile"),
        changes,
        home=Path("/srv/builds"),
    )


def printed(outcome: BisectOutcome, out: Read, **changes: tuple[str, str]) -> str:
    page.show_outcome(wanted(**changes), outcome)
    return out()


def as_json(outcome: BisectOutcome) -> Any:  # noqa: ANN401 what JSON holds
    return json_value(page.outcome_data(wanted(), outcome))


def test_the_commit_that_broke_it_is_named_with_the_one_to_pin(out: Read) -> None:
    found = BisectOutcome(STEPS[1:2], FAILED, 2, 1)
    shown = printed(found, out)
    assert "Broken by commit bbbbbbbbbbbb Note" in shown
    assert "compile fails: error: no member named x" in shown
    assert "git show bbbbbbbbbbbb" in shown
    assert f'commit = "{"a" * 40}"' in shown
    assert shown.endswith("2 trials built, 1 remembered.\n")
    told = as_json(found)
    assert (told["verdict"], told["commit"]) == ("changed", "b" * 40)


def test_several_changes_are_listed_where_trials_failed_otherwise(out: Read) -> None:
    found = BisectOutcome(STEPS[1:], FAILED, 2, 0)
    shown = printed(found, out)
    assert "Broken by one of these changes" in shown
    assert [step.title in shown for step in STEPS] == [False, True, True]
    assert len(as_json(found)["broken by"]) == 2


def test_what_passes_now_is_not_blamed_on_the_recipe(out: Read) -> None:
    found = BisectOutcome((), GOOD, 1, 0)
    shown = printed(found, out)
    assert "what failed passes now" in shown
    assert "invoke nightly --now" in shown
    assert as_json(found)["verdict"] == "passes now"


def test_a_host_that_fails_is_at_fault_with_what_changed_on_it(out: Read) -> None:
    found = BisectOutcome((), FAILED, 1, 0)
    assert "a server that tfwright does not record" in printed(found, out)
    shown = printed(found, out, cc=("gcc 12", ""))
    assert "cc, from gcc 12 to none" in shown
    assert as_json(found)["verdict"] == "host"


def test_at_the_start_the_number_of_trials_is_known(err: Read) -> None:
    page.show_start(wanted(cc=("gcc 12", "gcc 13")))
    assert err().splitlines() == [
        "monday is good, tuesday fails in compile.",
        "3 changes in between: about 3 trials, each up to compile.",
        "This host changed as well: cc, from gcc 12 to gcc 13",
    ]
    page.show_start(replace(wanted(), steps=()))
    assert err().splitlines()[1] == ("The recipe did not change: one trial, up to compile.")


def test_each_trial_says_what_it_gave_and_why(err: Read) -> None:
    page.show_trial(STEPS[0], GOOD)
    page.show_trial(STEPS[1], FAILED)
    assert err().splitlines() == [
        "good: commit aaaaaaaaaaaa Note",
        "bad: commit bbbbbbbbbbbb Note (compile: error: no member named x)",
    ]


def test_of_a_change_that_is_no_commit_the_kept_inputs_are_compared(out: Read) -> None:
    patch = BisectStep("patch 0001-x.patch", INPUTS)
    shown = printed(BisectOutcome((patch,), FAILED, 1, 0), out)
    assert (
        "Read what changed with 'diff -r /srv/builds/monday/inputs "
        "/srv/builds/tuesday/inputs'." in shown
    )
