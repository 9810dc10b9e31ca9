"""How long a run of Bazel still takes."""

import time
from collections import deque
from collections.abc import Callable

from tfwright.progress import Progress

_WINDOW = 300.0
"""Seconds over which the pace is measured: the last actions of TensorFlow, its CUDA kernels, take
minutes each."""
_SHORTEST = 60.0
"""Seconds of a run below which its pace says nothing: Bazel passes what is up to date at once."""


class Forecast:
    """Tells how long a run still takes, from an earlier run and from its own pace."""

    def __init__(self, earlier: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the seconds that an earlier run took in all, 0 if there was none."""
        self._earlier = earlier
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()

    def remaining(self, progress: Progress) -> float | None:
        """Return the seconds left, or None where nothing is known yet.

        It is a rough guess: Bazel's total still grows while it analyses. Of the two ways the longer
        one counts: where most is up to date, a share of the earlier run says too little.
        """
        if not progress.total:
            return None
        left = progress.total - progress.done
        guesses = []
        if self._earlier:
            guesses.append(self._earlier * left / progress.total)
        if (pace := self._pace(progress.done)) is not None:
            guesses.append(left * pace)
        return max(guesses, default=None)

    def _note(self, now: float, done: int) -> None:
        """Remember how many actions are done now, and forget what is older than the window."""
        self._seen.append((now, done))
        # The first one that is kept is older than the window, so that the window is full.
        while len(self._seen) > 1 and now - self._seen[1][0] >= _WINDOW:
            self._seen.popleft()

    def _pace(self, done: int) -> float | None:
        """Return the seconds that an action took lately, None while that is not known."""
        now = self._clock()
        self._note(now, done)
        then, before = self._seen[0]
        if now - then < _SHORTEST or done <= before:
            return None
        return (now - then) / (done - before)
