"""The foot of a running build: what Bazel does now, redrawn at the bottom of the terminal."""

import sys
import time
from typing import TYPE_CHECKING

from tfwright.progress import Progress, RunningAction
from tfwright.terminal import text
from tfwright.terminal.text import Part

if TYPE_CHECKING:
    from rich.live import Live

GIB = 1024**3
MOST = 4
"""Running actions that are shown; a terminal of 24 lines keeps most of its history."""
REDRAW_SECONDS = 0.2
"""Bazel prints hundreds of times a second; people do not read faster than this."""


class Foot:
    """A few lines that stay below everything else while a stage runs."""

    def __init__(self, stage: str) -> None:
        """Start with nothing drawn."""
        self._stage = stage
        self._live: Live | None = None
        self._drawn = 0.0

    def draw(self, progress: Progress) -> None:
        """Show how far the stage has come, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._drawn < REDRAW_SECONDS:
            return
        self._drawn = now
        from rich.text import Text

        room = text.width(sys.stderr) or 80
        rows = [Text.assemble(*parts) for parts in rows_of(self._stage, progress, room)]
        self._started().update(Text("\n").join(rows), refresh=True)

    def close(self) -> None:
        """Take the foot away, so that the next line takes its place."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _started(self) -> "Live":
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=sys.stderr, highlight=False, markup=False)
            # Refreshed by hand: a thread of its own would draw while another program writes.
            self._live = Live(
                console=console,
                auto_refresh=False,
                transient=True,
                # rich would send a path for a script to standard error.
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
            text.before_next_line(self.close)
        return self._live


def rows_of(stage: str, progress: Progress, room: int) -> list[tuple[Part, ...]]:
    """Return the lines of the foot, each at most `room` characters."""
    head = f"  {stage:<10} "
    state = ", ".join(measures(progress))
    # Never as wide as the terminal: a full line would
    # wrap, and the redraw would miss it.
    rows: list[tuple[Part, ...]] = [(text.bold(head), text.shortened(state, room - len(head) - 1))]
    running = progress.running[:MOST]
    rows += [_running(action, room) for action in running]
    if not running and progress.doing:
        doing = text.shortened(progress.doing, room - 14, "middle")
        rows.append((text.detail(" " * 13 + doing),))
    return rows


def _running(action: RunningAction, room: int) -> tuple[Part, ...]:
    lead = f"  {text.as_duration(action.seconds):>10}   "
    # Cut in the middle: an action's beginning says what is done, its end to which file.
    name = text.shortened(action.name, room - len(lead) - 1, "middle")
    return (text.detail(lead), name)


def measures(progress: Progress) -> list[str]:
    """Return what is known of a piece of work in numbers, the most important first."""
    known = [_done(progress)]
    if progress.failures:
        known.append(f"{progress.failures} failed")
    if progress.remaining is not None:
        known.append(f"about {text.as_duration(progress.remaining)} left")
    if progress.held:
        known.append(f"{progress.held / GIB:.1f} of {progress.room / GIB:.0f} GiB")
    return known


def _done(progress: Progress) -> str:
    done = progress.done
    total = progress.total
    unit = progress.unit
    if total is None:
        return f"{done:,} {unit}"
    share = f" ({done / total:.0%})" if total else ""
    return f"{done:,} of {total:,} {unit}{share}"
