"""Which worker builds which recipe next: the longest first, and again where a worker was lost.

Pure data: the caller runs the builds and reports what happened, so that a test can simulate a
thousand recipes on a hundred workers in a second.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tfwright.tools.remote.ssh import RemoteBuild

ATTEMPTS = 3
"""Workers that a recipe may lose before it counts as failed: perhaps it is what kills them."""
State = Literal["waiting", "running", "built", "failed", "refused", "lost"]


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

    @property
    def sentence(self) -> str:
        """What happened last, in a line."""
        if self.state == "running":
            return f"{self.recipe}: started on {self.worker}"
        if self.state == "waiting":
            what = "was lost" if self.worker in self.lost else "cannot build it"
            return f"{self.recipe}: {self.worker} {what}; another worker takes it"
        where = f"{self.state} on {self.worker}" if self.worker else self.state
        return f"{self.recipe}: {where} in {self.seconds:.0f} s"

    def after(self, state: State, result: RemoteBuild, **more: Any) -> "Assignment":  # noqa: ANN401
        """Return the assignment after a build."""
        return replace(
            self,
            state=state,
            seconds=result.seconds,
            detail=result.failure,
            remedy=result.remedy,
            log=result.log,
            # ssh's own status is not the build's.
            status=0 if result.lost else result.status,
            **more,
        )


class WorkSchedule:
    """All recipes, and which workers are still there.

    `took` are seconds of earlier builds, by recipe. The longest comes first: a long build that
    starts last keeps all other workers waiting. A recipe that was never built may be long, and
    comes before all others.
    """

    def __init__(
        self, recipes: Sequence[str], workers: Sequence[str], took: Mapping[str, float]
    ) -> None:
        """Begin with nothing under way."""
        order = sorted(dict.fromkeys(recipes), key=lambda recipe: -took.get(recipe, float("inf")))
        self.assignments = {recipe: Assignment(recipe) for recipe in order}
        """By recipe, in the order in which they are handed out."""
        self.workers = tuple(workers)
        self.gone: set[str] = set()
        """Workers that were lost."""

    def _in_state(self, state: State) -> list[Assignment]:
        return [each for each in self.assignments.values() if each.state == state]

    @property
    def running(self) -> bool:
        """Whether any worker builds."""
        return bool(self._in_state("running"))

    def start(self) -> list[Assignment]:
        """Give every idle worker the first recipe that it has not refused; return what starts."""
        begun = []
        busy = {each.worker for each in self._in_state("running")} | self.gone
        waiting = self._in_state("waiting")
        for worker in self.workers:
            fit = (each for each in waiting if worker not in each.refused)
            if worker in busy or (assignment := next(fit, None)) is None:
                continue
            waiting.remove(assignment)
            begun.append(replace(assignment, state="running", worker=worker))
        self.assignments |= {each.recipe: each for each in begun}
        return begun

    def finish(self, recipe: str, result: RemoteBuild) -> Assignment:
        """Note a result; the recipe of a lost worker, or of one that refused it, waits again."""
        before = self.assignments[recipe]
        if result.lost:
            self.gone.add(before.worker)
            lost = (*before.lost, before.worker)
            state: State = "waiting" if self._has_worker(before.refused) else "lost"
            # Also with workers left: the recipe would take down one after the other.
            done = before.after("failed" if len(lost) >= ATTEMPTS else state, result, lost=lost)
        elif result.refused:
            # The worker stays, since it may build the other recipes.
            refused = (*before.refused, before.worker)
            state = "waiting" if self._has_worker(refused) else "refused"
            done = before.after(state, result, refused=refused)
        else:
            done = before.after("failed" if result.failure else "built", result)
        self.assignments[recipe] = done
        return done

    def _has_worker(self, refused: Sequence[str]) -> bool:
        return bool({*self.workers} - self.gone - {*refused})

    def close(self) -> None:
        """Note at the end that what still waits had no worker left."""
        for assignment in self._in_state("waiting"):
            done = replace(assignment, state="lost")
            # What a worker said about it last is worth more than the general reason.
            if not assignment.detail:
                done = replace(
                    done,
                    detail="no worker was left that could build it",
                    remedy="Bring the workers back, and build it again.",
                )
            self.assignments[assignment.recipe] = done
