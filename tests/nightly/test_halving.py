"""Halving over steps."""

import pytest

from tfwright.bisect.bisection import expected_trials, first_bad
from tfwright.bisect.trial import TrialAnswer


@pytest.mark.parametrize("count", [1, 2, 3, 10, 100])
def test_the_first_bad_step_is_found_wherever_it_is(count: int) -> None:
    for culprit in range(count):
        tried: list[int] = []

        def judged(step: int, culprit: int = culprit) -> TrialAnswer:
            tried.append(step)  # noqa: B023 called within the loop
            return "bad" if step >= culprit else "good"

        assert first_bad(range(count), judged).suspects == (culprit,)
        assert len(tried) <= expected_trials(count) + 1


def test_steps_that_cannot_be_tried_leave_more_than_one_suspect() -> None:
    def tried(step: int) -> TrialAnswer:
        if step in {4, 5}:
            return "skip"
        return "bad" if step >= 5 else "good"

    found = first_bad(range(10), tried)
    assert found.suspects == (4, 5, 6)
    assert found.first_bad == 6


def test_a_single_step_needs_no_trial() -> None:
    asked: list[str] = []

    def tried(step: str) -> TrialAnswer:
        asked.append(step)
        return "good"

    found = first_bad(["only"], tried)
    assert (found.first_bad, asked) == ("only", [])
