"""Halving: which of many steps from a good state to a bad one breaks it, in the fewest trials."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

Step = TypeVar("Step")
TrialAnswer = Literal["good", "bad", "skip"]
"""What a trial gave; ``skip`` where something else is broken, so that it says nothing."""


@dataclass(frozen=True)
class Culprits(Generic[Step]):
    """Where the halving ended."""

    first_bad: Step
    """The first step that is known to be bad."""
    suspects: tuple[Step, ...]
    """All steps that may be at fault: more than one only where trials were skipped."""
    trials: int


def first_bad(steps: Sequence[Step], tried: Callable[[Step], TrialAnswer]) -> Culprits[Step]:
    """Find the first bad one of `steps`, which come after a good state; the last one is bad.

    A step that cannot be tried is left out, and its neighbours are tried instead, nearest first.
    """
    # Everything up to `low` is good, -1 being the good state; `high` is always bad.
    low, high = -1, len(steps) - 1
    skipped: set[int] = set()
    trials = 0
    while True:
        # `high` itself is left out: its answer is known.
        candidates = [index for index in range(low + 1, high) if index not in skipped]
        if not candidates:
            return Culprits(steps[high], tuple(steps[low + 1 : high + 1]), trials)
        middle = (low + high) // 2
        index = min(candidates, key=lambda candidate: abs(candidate - middle))
        answer = tried(steps[index])
        trials += 1
        if answer == "skip":
            skipped.add(index)
        elif answer == "bad":
            high = index
        else:
            low = index


def expected_trials(count: int) -> int:
    """Return about how many trials a halving of so many steps takes."""
    return max(0, count - 1).bit_length()
