"""`invoke bisect`: which change broke a recipe: a table, a patch, a commit, or the lock file.

Both ends are read from the directories of two builds, which hold the inputs as they were.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tfwright.bisect.steps import BisectStep, steps_between
from tfwright.bisect.trial import FOLDER, Symptom, TrialAnswer, TrialResult, Trials
from tfwright.documents import host_file, nightly
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.errors import RecipeError
from tfwright.nightly import builds, targets
from tfwright.nightly import state as states
from tfwright.nightly.builds import CommitLine, KeptInputs, NightlyBuild
from tfwright.nightly.state import Culprit, State
from tfwright.progress import SILENCE, Listener

Step = TypeVar("Step")


@dataclass(frozen=True)
class Bisection:
    """What is to be found out."""

    good: NightlyBuild
    bad: NightlyBuild
    start: KeptInputs
    """What made the good wheel."""
    steps: tuple[BisectStep, ...]
    symptom: Symptom
    host_changes: Mapping[str, tuple[str, str]]
    """What of the host differs between the builds, and no trial can take back: before and after."""
    home: Path = Path()
    """The directory of both builds, each of which holds its inputs."""


@dataclass(frozen=True)
class BisectOutcome:
    """What the trials say."""

    suspects: tuple[BisectStep, ...]
    """The steps that may be at fault, of which the last is the first that is known to be bad: more
    than one only where trials were skipped, none if no change of the recipe is at fault."""
    result: TrialResult
    """What the first bad step gives; without one, the inputs of the good build on this host now."""
    ran: int
    """Trials that were built."""
    remembered: int
    """Trials whose result an interrupted run had left."""

    def sentence(self, bisection: Bisection) -> str:
        """Say in a sentence what broke the recipe."""
        if self.suspects:
            # Trials that fail in another way say nothing, and leave several changes.
            several = "one of these changes, between which trials failed otherwise: "
            one_of = several if len(self.suspects) > 1 else ""
            return f"Broken by {one_of}{'; '.join(step.title for step in self.suspects)}"
        if self.result.answer == "good":
            return "No change of the recipe is at fault: what failed passes now"
        where = "something on this host or a server that tfwright does not record"
        if bisection.host_changes:
            where = f"this host, whose {', '.join(bisection.host_changes)} changed"
        return f"Broken by {where}: what was good before fails now as well"


class OutOfTimeError(Exception):
    """A night's budget is spent; what the trials gave is kept for the next one."""


def find_nightly_culprit(
    build: NightlyBuild, seconds: float, note: Callable[[str], None]
) -> Culprit | None:
    """Find the change that broke a nightly build; None where `seconds` are spent before.

    Raises HostError if this host cannot build the recipe at all.
    """
    end = time.monotonic() + seconds

    def on_result(step: BisectStep, result: TrialResult) -> None:
        note(f"{build.target}: bisect: {result.answer}: {step.title}")
        if time.monotonic() > end:
            raise OutOfTimeError

    try:
        bisection = prepare(build.target, bad=build.id)
        outcome = bisect(bisection, on_result)
    except RecipeError as fault:
        return Culprit("", f"No bisection was possible: {fault.what}")
    except OutOfTimeError:
        return None
    commit = outcome.suspects[-1].commit if outcome.suspects else ""
    return Culprit("", outcome.sentence(bisection), commit)


def prepare(name: str, good: str = "", bad: str = "") -> Bisection:
    """Read the two builds and list the steps between them.

    Raises RecipeError if one of the builds is missing, or nothing that can be tried changed.
    """
    nightly_file, host = nightly.read(), host_file.read()
    nightly.named_targets(nightly_file, name, of_recipe=False)
    with states.open_state(nightly_file.directory) as state:
        first, last = _first_and_last(state, name, good, bad)
    home = nightly_file.builds
    start, end = _inputs_of(first, home), _inputs_of(last, home)
    commits = _commits(start.recipe, end.recipe, host)
    folder = host.build_out / FOLDER / f"{name}.patches"
    steps = tuple(steps_between(start, end, commits, folder))
    before, after = first.fingerprint, last.fingerprint
    of_host = {
        part: (before.get(part, ""), after.get(part, ""))
        for part in builds.differing_parts(before, after)
        if part in targets.OF_HOST
    }
    if not steps and not of_host:
        raise RecipeError(
            f"Nothing that decides the wheel changed between {first.id} and {last.id}",
            remedy="Read the log of the failed build; "
            f"'invoke nightly --recipe {name} --now' builds it again.",
            where=home / last.id,
        )
    return Bisection(first, last, start, steps, Symptom.of(last), of_host, home)


def _first_and_last(
    state: State, name: str, good: str, bad: str
) -> tuple[NightlyBuild, NightlyBuild]:
    """Return the builds to start from: the newest failed one, and the newest good one before it."""
    kept = state.builds(name)
    # A build that the host blocked, or whose name was taken, says nothing about the recipe.
    failed = [
        item for item in kept if not item.good and item.result != "blocked" and not item.unpublished
    ]
    last = state.build(bad or (failed[-1].id if failed else ""))
    order = [item.id for item in kept]
    # By their order, not by their dates: a host's clock may have been wrong.
    before = order.index(last.id) if last and last.id in order else len(order)
    passed = [item for item in kept[:before] if item.good]
    first = state.build(good or (passed[-1].id if passed else ""))
    if first is None or last is None:
        raise RecipeError(
            f"{name} has no {'failed' if last is None else 'good'} build to start from",
            remedy="Name one with --good and --bad; the page lists the identifiers.",
        )
    # A build that shows nothing that a trial could look for.
    if last.good or last.unpublished:
        raise RecipeError(
            f"{last.id} gave a wheel that failed no test",
            remedy=last.unpublished or "Name a failed build with --bad.",
        )
    if last.broken and last.broken.stage == "tfwright":
        raise RecipeError(
            f"{last.id} failed by {last.broken.cause}, not by a change of the recipe",
            remedy=f"Report it: 'invoke report --build {last.id}' prints what is needed.",
        )
    return first, last


def _inputs_of(build: NightlyBuild, home: Path) -> KeptInputs:
    """Return what a build was made from. Raises RecipeError if that cannot be read."""
    kept = builds.read_inputs(home / build.id)
    if kept is None:
        raise RecipeError(
            f"What {build.id} was made from cannot be read",
            remedy="Choose another build with --good or --bad; the page lists the identifiers.",
            where=home / build.id / builds.INPUTS,
        )
    return kept


def _commits(good: Recipe, bad: Recipe, host: HostFile) -> Sequence[CommitLine]:
    """Return the commits after the good one up to the bad one, oldest first."""
    before, now = good.source.commit, bad.source.commit
    if before == now:
        return ()
    found = targets.commits(bad.source.url, before, now, host)
    # After a rewritten branch no path leads from one to the other: the new tip is the only step.
    return found[::-1] or [CommitLine(commit=now, subject="and all before it")]


def suspects(steps: Sequence[Step], try_step: Callable[[Step], TrialAnswer]) -> tuple[Step, ...]:
    """Find the first bad one of `steps`, which come after a good state; the last one is bad.

    It is the last of what is returned, after those before it that cannot be ruled out.
    A step that cannot be tried is left out, and its neighbours are tried instead, nearest first.
    """
    # Everything up to `low` is good, -1 being the good state; `high` is always bad.
    low, high = -1, len(steps) - 1
    skipped: set[int] = set()
    while True:
        # `high` itself is left out: its answer is known.
        candidates = [index for index in range(low + 1, high) if index not in skipped]
        if not candidates:
            return tuple(steps[low + 1 : high + 1])
        middle = (low + high) // 2
        index = min(candidates, key=lambda candidate: abs(candidate - middle))
        answer = try_step(steps[index])
        if answer == "skip":
            skipped.add(index)
        elif answer == "bad":
            high = index
        else:
            low = index


def expected_trials(count: int) -> int:
    """Return about how many trials a halving of so many steps takes."""
    return max(0, count - 1).bit_length()


def bisect(
    bisection: Bisection,
    on_result: Callable[[BisectStep, TrialResult], None],
    listener: Listener = SILENCE,
) -> BisectOutcome:
    """Try steps until it is known which one breaks.

    Every trial keeps the caches, and ends with the stage that failed. An interrupted run goes on
    where it was. Raises HostError if this host cannot build the recipe at all, or if another
    process bisects it.
    """
    trials = Trials(bisection.bad.target, bisection.symptom, listener)
    results: dict[str, TrialResult] = {}

    def try_step(step: BisectStep) -> TrialAnswer:
        result = trials(step.inputs, was_good=step is start)
        results[step.key] = result
        on_result(step, result)
        return result.answer

    name = bisection.bad.target
    recipe = bisection.start.recipe.changed(name=name)
    start = BisectStep(
        f"{bisection.good.id}, as it was", KeptInputs(recipe, bisection.start.locked)
    )
    found: tuple[BisectStep, ...] = ()
    with trials.directory():
        # What was good before has to be good now; else the host is what changed.
        if try_step(start) == "good" and bisection.steps:
            found = suspects(bisection.steps, try_step)
            # The last step is taken for bad, as the night found it: blame it only after a trial.
            if found[-1].key not in results and try_step(found[-1]) != "bad":
                found = ()
    blamed = results[found[-1].key if found else start.key]
    return BisectOutcome(found, blamed, trials.ran, trials.remembered)
