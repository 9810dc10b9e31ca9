"""How long a run of Bazel still takes."""

from collections.abc import Sequence

import pytest

from tfwright.pipeline.compile.attempts import Pace
from tfwright.progress import Progress


def last(seen: Sequence[tuple[float, int]], total: int | None) -> float | None:
    """Return the last estimate for a run of which this many actions were done at these seconds."""
    clock = (moment for moment, _ in seen)
    pace, left = Pace(clock.__next__), None
    for _, done in seen:
        left = pace.remaining(Progress(done=done, total=total))
    return left


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
    slow = [(100.0 + 30 * n, 900 + n) for n in range(20)]
    assert last([(0, 0), (1, 900), *slow], total=1000) == (1000 - 919) * 30
