"""Which worker builds which recipe next: the longest first, and again where a worker was lost.

Pure data: the caller runs the builds and reports what happened, so that a test can simulate a
thousand recipes on a hundred workers in a second.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

ATTEMPTS = 3
"""Workers that a recipe may lose before it counts as failed: perhaps it is what kills them."""
State = Literal["waiting", "running", "built", "failed", "refused", "lost"]


@dataclass(frozen=True)
class Trouble:
    """Why a worker did not build a recipe, and what to do about it."""

    what: str
    remedy: str = ""
    log: str = ""
    status: int = 0
    """The exit status of the build; 0 where it has none."""


@dataclass(frozen=True)
class Assignment:
    """A recipe, and what became of it."""

    recipe: str
    state: State = "waiting"
    worker: str = ""
    """The worker that builds it, or did so last."""
    lost: tuple[str, ...] = ()
    """Workers that died while they built it."""
    refused: tuple[str, ...] = ()
    """Workers that cannot build it: they lack a toolkit, a Python, or space."""
    seconds: float = 0.0
    detail: str = ""
    """Why it failed, or was given back last."""
    remedy: str = ""
    log: str = ""
    """What the worker printed, on this host."""
    status: int = 0
    """The exit status of the build that failed; 0 where it has none."""

    def with_trouble(self, trouble: Trouble) -> "Assignment":
        """Return the assignment with what went wrong."""
        return replace(
            self, detail=trouble.what, remedy=trouble.remedy, log=trouble.log, status=trouble.status
        )

    def given_to(self, worker: str) -> "Assignment":
        """Return the assignment while a worker builds the recipe."""
        return replace(self, state="running", worker=worker)


@dataclass(frozen=True)
class WorkSchedule:
    """All recipes, and which workers are still there."""

    assignments: Mapping[str, Assignment]
    """By recipe, in the order in which they are handed out."""
    workers: tuple[str, ...]
    gone: frozenset[str] = field(default_factory=frozenset)
    """Workers that were lost."""

    @property
    def over(self) -> bool:
        """Whether nothing runs, and no worker is left for what waits."""
        running = any(each.state == "running" for each in self.assignments.values())
        return not running and not self._pairs()

    @property
    def waiting(self) -> tuple[str, ...]:
        """Recipes that no worker builds yet."""
        found = (each.recipe for each in self.assignments.values() if each.state == "waiting")
        return tuple(found)

    @property
    def idle(self) -> tuple[str, ...]:
        """Workers that build nothing."""
        busy = {each.worker for each in self.assignments.values() if each.state == "running"}
        return tuple(name for name in self.workers if name not in busy | self.gone)

    def started(self) -> tuple["WorkSchedule", tuple[Assignment, ...]]:
        """Return the schedule with every idle worker busy, and what is to be started."""
        begun = []
        for recipe, worker in self._pairs():
            begun.append(self.assignments[recipe].given_to(worker))
        return self._with(*begun), tuple(begun)

    def ended(self, recipe: str, seconds: float, failure: Trouble | None = None) -> "WorkSchedule":
        """Return the schedule after a build came to its end; `failure` says why it failed."""
        state: State = "failed" if failure else "built"
        done = replace(self.assignments[recipe], state=state, seconds=seconds)
        return self._with(done.with_trouble(failure or Trouble("")))

    def refused(self, recipe: str, seconds: float, why: Trouble) -> "WorkSchedule":
        """Return the schedule after a worker could not build a recipe: another one tries.

        The worker stays, since it may build the other recipes.
        """
        before = self.assignments[recipe]
        refused = (*before.refused, before.worker)
        left = set(self.workers) - self.gone - set(refused)
        state: State = "waiting" if left else "refused"
        done = replace(before, state=state, refused=refused, seconds=seconds)
        return self._with(done.with_trouble(why))

    def lost(self, recipe: str, seconds: float, why: Trouble) -> "WorkSchedule":
        """Return the schedule after the worker of a recipe died: another one builds the recipe."""
        before = self.assignments[recipe]
        lost = (*before.lost, before.worker)
        gone = self.gone | {before.worker}
        left = set(self.workers) - gone - set(before.refused)
        state: State = "waiting" if left else "lost"
        # Also with workers left: the recipe would take down one after the other.
        if len(lost) >= ATTEMPTS:
            state = "failed"
        given_back = replace(before, state=state, lost=lost, seconds=seconds)
        return replace(self._with(given_back.with_trouble(why)), gone=gone)

    def closed(self) -> "WorkSchedule":
        """Return the schedule at its end: what still waits had no worker left."""
        none = Trouble(
            "no worker was left that could build it", "Bring the workers back, and build it again."
        )
        left = []
        for name in self.waiting:
            given = replace(self.assignments[name], state="lost")
            # What a worker said about it last is worth more than the general reason.
            left.append(given if given.detail else given.with_trouble(none))
        return self._with(*left)

    def _pairs(self) -> list[tuple[str, str]]:
        """Return which idle worker gets which recipe next."""
        waiting = list(self.waiting)
        pairs = []
        for worker in self.idle:
            recipe = self._first_for(worker, waiting)
            if recipe:
                waiting.remove(recipe)
                pairs.append((recipe, worker))
        return pairs

    def _first_for(self, worker: str, waiting: Sequence[str]) -> str:
        """Return the first recipe that a worker has not refused; empty if there is none."""
        for recipe in waiting:
            if worker not in self.assignments[recipe].refused:
                return recipe
        return ""

    def _with(self, *changed: Assignment) -> "WorkSchedule":
        updates = {each.recipe: each for each in changed}
        return replace(self, assignments={**self.assignments, **updates})


def planned(
    recipes: Sequence[str], workers: Sequence[str], took: Mapping[str, float]
) -> WorkSchedule:
    """Return the schedule before anything runs; `took` are seconds of earlier builds, by recipe.

    The longest first: a long build that starts last keeps all other workers waiting. A recipe that
    was never built may be long, and comes before all others.
    """
    order = sorted(dict.fromkeys(recipes), key=lambda recipe: -took.get(recipe, float("inf")))
    return WorkSchedule({recipe: Assignment(recipe) for recipe in order}, tuple(workers))
