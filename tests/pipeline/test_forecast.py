"""How long a run of Bazel still takes."""

from collections.abc import Sequence

from tfwright.pipeline.forecast import Forecast
from tfwright.progress import Progress


def last(earlier: float, seen: Sequence[tuple[float, int]], total: int | None) -> float | None:
    """Return the last forecast of a run of which this many actions were done at these seconds."""
    clock = (moment for moment, _ in seen)
    forecast, left = Forecast(earlier, clock.__next__), None
    for _, done in seen:
        left = forecast.remaining(Progress(done=done, total=total))
    return left


def test_a_run_takes_as_long_as_an_earlier_one() -> None:
    assert last(1000, [(0, 0), (30, 250)], total=1000) == 750


def test_nothing_is_known_of_the_first_minute_of_a_first_build() -> None:
    assert last(0, [(0, 0), (30, 250)], total=1000) is None


def test_nothing_is_known_while_the_number_of_actions_is_not() -> None:
    assert last(1000, [(0, 0), (100, 250)], total=None) is None


def test_a_first_build_goes_on_at_its_pace() -> None:
    assert last(0, [(0, 0), (50, 100), (100, 200)], total=1000) == 400


def test_a_slow_end_counts_more_than_the_share_of_what_was_up_to_date() -> None:
    slow = [(100.0 + 30 * n, 900 + n) for n in range(20)]
    assert last(500, [(0, 0), (1, 900), *slow], total=1000) == (1000 - 919) * 30


def test_a_build_that_waits_for_one_action_has_no_pace() -> None:
    waits = [(0, 0), (100, 999), (5000, 999)]
    assert last(1000, waits, total=1000) == 1
