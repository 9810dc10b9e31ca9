"""What `invoke bisect` prints."""

import shlex

from tfwright.bisect.bisection import Bisection, BisectOutcome, expected_trials
from tfwright.bisect.steps import BisectStep
from tfwright.bisect.trial import TrialResult
from tfwright.nightly.builds import INPUTS
from tfwright.terminal import text


def show_start(wanted: Bisection) -> None:
    """Say what lies between the two builds, and about how many trials that takes."""
    stage, count = wanted.symptom.stage, len(wanted.steps)
    # One more: the good build is tried first, to see whether this host still builds it. A single
    # change is tried as well, before it is blamed.
    trials = max(min(count, 1), expected_trials(count)) + 1
    text.tell(f"{wanted.good.id} is good, {wanted.bad.id} fails in {stage}.")
    if count:
        changes, expected = text.counted(count, "change"), text.counted(trials, "trial")
        text.tell(f"{changes} in between: about {expected}, each up to {stage}.")
    else:
        text.tell(f"The recipe did not change: one trial, up to {stage}.")
    for change in wanted.host_changes.items():
        text.tell(f"This host changed as well: {_host_change(change)}")


def show_trial(step: BisectStep, result: TrialResult) -> None:
    """Say what one trial gave."""
    failed = f" ({result.stage}: {result.line})" if result.answer != "good" else ""
    text.tell(f"{result.answer}: {step.said}{failed}")


def show_outcome(wanted: Bisection, outcome: BisectOutcome) -> None:
    """Say what broke the recipe, and what to do about it."""
    text.line(outcome.said(wanted))
    result, first_bad = outcome.result, next(reversed(outcome.suspects), None)
    if result.answer == "good":
        # Unchanged, so a night would not build it by itself.
        text.line("Run 'invoke nightly --now' to build it again.")
    else:
        text.line(f"  {result.stage} fails: {result.line}")
        for change in () if first_bad else wanted.host_changes.items():
            text.line(f"  {_host_change(change)}")
    if first_bad and (commit := first_bad.commit):
        # Patches and the lock are steps as well, and have no commit.
        position = wanted.steps.index(first_bad)
        before = wanted.steps[position - 1].commit if position else ""
        before = before or wanted.start.recipe.source.commit
        text.line(f"Read it with 'git show {commit[:12]}' in the source tree.")
        text.line(f'Until it is corrected, pin the commit before it: commit = "{before}"')
    elif first_bad:
        both = [wanted.home / build.id / INPUTS for build in (wanted.good, wanted.bad)]
        command = shlex.join(["diff", "-r", *map(str, both)])
        text.line(f"Read what changed with '{command}'.")
    remembered = f", {outcome.remembered} remembered" if outcome.remembered else ""
    text.line(f"{text.counted(outcome.ran, 'trial')} built{remembered}.")


def _host_change(change: tuple[str, tuple[str, str]]) -> str:
    name, (before, after) = change
    return f"{name}, from {before or 'none'} to {after or 'none'}"


def outcome_data(wanted: Bisection, outcome: BisectOutcome) -> dict[str, object]:
    """Return the outcome for machines."""
    suspects = outcome.suspects
    otherwise = "passes now" if outcome.result.answer == "good" else "host"
    return {
        "good": wanted.good.id,
        "bad": wanted.bad.id,
        "verdict": "changed" if suspects else otherwise,
        "broken by": [step.said for step in suspects],
        "commit": suspects[-1].commit if suspects else "",
        "stage": outcome.result.stage,
        "line": outcome.result.line,
        "host changes": wanted.host_changes,
        "trials": outcome.ran,
        "remembered": outcome.remembered,
    }
