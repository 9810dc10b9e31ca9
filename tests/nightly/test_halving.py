"""Halving over steps."""

from functools import partial

import pytest

from tfwright.bisect.halving import TrialAnswer, expected_trials, first_bad


def judged(culprit: int, step: int) -> TrialAnswer:
    return "bad" if step >= culprit else "good"


@pytest.mark.parametrize("count", [1, 2, 3, 10, 100])
def test_the_first_bad_step_is_found_wherever_it_is(count: int) -> None:
    for culprit in range(count):
        found = first_bad(range(count), partial(judged, culprit))
        assert found.suspects == (culprit,)
        assert found.trials <= expected_trials(count) + 1


def test_steps_that_cannot_be_tried_leave_more_than_one_suspect() -> None:
    def tried(step: int) -> TrialAnswer:
        if step in {4, 5}:
            return "skip"
        return "bad" if step >= 5 else "good"

    found = first_bad(range(10), tried)
    assert found.suspects == (4, 5, 6)
    assert found.first_bad == 6


def test_a_single_step_needs_no_trial() -> None:
    found = first_bad(["only"], lambda _: "good")
    assert (found.first_bad, found.trials) == ("only", 0)
