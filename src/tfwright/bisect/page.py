"""What `invoke bisect` prints."""

import shlex

from tfwright.bisect.bisection import Bisection, BisectOutcome, expected_trials
from tfwright.bisect.steps import BisectStep
from tfwright.bisect.trial import TrialResult
from tfwright.nightly.builds import INPUTS
from tfwright.terminal import text


def show_start(bisection: Bisection) -> None:
    """Say what lies between the two builds, and about how many trials that takes."""
    stage, count = bisection.symptom.stage, len(bisection.steps)
    # One more: the good build is tried first, to see whether this host still builds it. A single
    # change is tried as well, before it is blamed.
    trials = max(min(count, 1), expected_trials(count)) + 1
    text.tell(f"{bisection.good.id} is good, {bisection.bad.id} fails in {stage}.")
    if count:
        changes, expected = text.counted(count, "change"), text.counted(trials, "trial")
        text.tell(f"{changes} in between: about {expected}, each up to {stage}.")
    else:
        text.tell(f"The recipe did not change: one trial, up to {stage}.")
    for change in bisection.host_changes.items():
        text.tell(f"This host changed as well: {_host_change(change)}")


def show_trial(step: BisectStep, result: TrialResult) -> None:
    """Say what one trial gave."""
    failed = f" ({result.stage}: {result.line})" if result.answer != "good" else ""
    text.tell(f"{result.answer}: {step.title}{failed}")


def show_outcome(bisection: Bisection, outcome: BisectOutcome) -> None:
    """Say what broke the recipe, and what to do about it."""
    text.line(outcome.sentence(bisection))
    result, first_bad = outcome.result, next(reversed(outcome.suspects), None)
    if result.answer == "good":
        # Unchanged, so a night would not build it by itself.
        text.line("Run 'invoke nightly --now' to build it again.")
    else:
        text.line(f"  {result.stage} fails: {result.line}")
        for change in () if first_bad else bisection.host_changes.items():
            text.line(f"  {_host_change(change)}")
    if first_bad and (commit := first_bad.commit):
        # Patches and the lock are steps as well, and have no commit.
        position = bisection.steps.index(first_bad)
        before = bisection.steps[position - 1].commit if position else ""
        before = before or bisection.start.recipe.source.commit
        text.line(f"Read it with 'git show {commit[:12]}' in the source tree.")
        text.line(f'Until it is corrected, pin the commit before it: commit = "{before}"')
    elif first_bad:
        both = [bisection.home / build.id / INPUTS for build in (bisection.good, bisection.bad)]
        command = shlex.join(["diff", "-r", *map(str, both)])
        text.line(f"Read what changed with '{command}'.")
    remembered = f", {outcome.remembered} remembered" if outcome.remembered else ""
    text.line(f"{text.counted(outcome.ran, 'trial')} built{remembered}.")


def _host_change(change: tuple[str, tuple[str, str]]) -> str:
    name, (before, after) = change
    return f"{name}, from {before or 'none'} to {after or 'none'}"


def outcome_data(bisection: Bisection, outcome: BisectOutcome) -> dict[str, object]:
    """Return the outcome for machines."""
    suspects = outcome.suspects
    otherwise = "passes now" if outcome.result.answer == "good" else "host"
    return {
        "good": bisection.good.id,
        "bad": bisection.bad.id,
        "verdict": "changed" if suspects else otherwise,
        "broken by": [step.title for step in suspects],
        "commit": suspects[-1].commit if suspects else "",
        "stage": outcome.result.stage,
        "line": outcome.result.line,
        "host changes": bisection.host_changes,
        "trials": outcome.ran,
        "remembered": outcome.remembered,
    }
