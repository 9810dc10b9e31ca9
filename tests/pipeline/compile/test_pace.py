"""How long a run of Bazel still takes."""

from collections.abc import Sequence

import pytest

from tfwright.pipeline.compile.attempts import Pace
from tfwright.progress import Progress


def judged(seen: Sequence[tuple[float, int, int | None]], usual: int = 500) -> Progress:
    """Return what is shown last of a run with (seconds, actions done, actions known) so far."""
    clock = (moment for moment, *_ in seen)
    pace = Pace(usual, clock.__next__)
    return [pace.estimate(Progress(done=done, total=total)) for _, done, total in seen][-1]


def last(seen: Sequence[tuple[float, int]], total: int | None) -> float | None:
    """Return the last estimate for a run of which this many actions were done at these seconds."""
    return judged([(moment, done, total) for moment, done in seen]).remaining


@pytest.mark.parametrize(
    ("seen", "total"),
    [
        # The first minute.
        ([(0, 0), (30, 250)], 1000),
        # The number of actions is not known.
        ([(0, 0), (100, 250)], None),
        # The build waits for one action.
        ([(0, 0), (100, 999), (5000, 999)], 1000),
    ],
)
def test_without_a_pace_nothing_is_known(
    seen: Sequence[tuple[float, int]], total: int | None
) -> None:
    assert last(seen, total) is None


def test_a_build_goes_on_at_its_pace() -> None:
    assert last([(0, 0), (50, 100), (100, 200)], total=1000) == 400


def test_a_slow_end_counts_more_than_what_was_up_to_date() -> None:
    slow = [(100.0 + 30 * n, 900 + n) for n in range(40)]
    assert last([(0, 0), (1, 900), *slow], total=1000) == (1000 - 939) * 30


def test_what_came_from_a_cache_does_not_count_as_soon_as_bazel_compiles() -> None:
    slow = [(120.0 + 30 * n, 5000 + n) for n in range(12)]
    assert last([(0, 0), (60, 3000), (110, 5000), *slow], total=10000) == (10000 - 5011) * 30


def test_one_slow_action_does_not_make_the_rest_slow() -> None:
    steady = [(10.0 * n, n) for n in range(300)]
    waiting = [(2990.0 + 10 * n, 299) for n in range(30)]
    assert last([*steady, *waiting], total=1000) == pytest.approx((1000 - 299) * 39)


def test_a_total_that_grows_with_the_work_is_not_shown() -> None:
    growing = judged([(30 * n, 50 * n, 50 * n + 53) for n in range(9)])
    assert (growing.total, growing.remaining) == (None, None)


def test_a_total_that_has_stopped_growing_is_shown_again() -> None:
    growing = [(30 * n, 50 * n, 50 * n + 53) for n in range(9)]
    assert judged([*growing, *((270 + 30 * n, 450, 453) for n in range(4))]).total == 453


def test_a_total_that_is_a_part_of_the_last_builds_is_not_shown() -> None:
    library = [(30.0 * n, 20 * n, 580) for n in range(20)]
    assert judged(library, usual=10_390).total is None
    assert judged(library, usual=600).remaining == pytest.approx(300)


def test_the_first_build_says_how_long_once_its_total_has_stood_for_as_long() -> None:
    library = [(30.0 * n, 20 * n, 580) for n in range(20)]
    assert judged(library[:12], usual=0).remaining is None
    assert judged(library, usual=0).remaining == pytest.approx(300)
