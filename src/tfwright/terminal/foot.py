"""The foot of a running build: what Bazel does now, redrawn at the bottom of the terminal."""

import sys
import time
from typing import TYPE_CHECKING, Any

from tfwright.progress import Progress
from tfwright.terminal import text
from tfwright.terminal.text import Part

if TYPE_CHECKING:
    from rich.live import Live

GIB = 1024**3
MOST = 4
"""Running actions that are shown; a terminal of 24 lines keeps most of its history."""
REDRAW_SECONDS = 0.2
"""Bazel prints hundreds of times a second; people do not read faster than this."""


class _Drawn:
    """What is below everything else, until it is taken away."""

    _live: "Live | None" = None

    def _start_live(self, **refresh: Any) -> "Live":  # noqa: ANN401 rich's
        """Begin to draw it; return what takes its content."""
        from rich.live import Live

        self._live = Live(
            console=text.console(sys.stderr),
            transient=True,
            # rich would send a path for a script to standard error.
            redirect_stdout=False,
            redirect_stderr=False,
            **refresh,
        )
        self._live.start()
        text.before_next_line(self.close)
        return self._live

    def close(self) -> None:
        """Take it away, so that the next line takes its place."""
        if self._live is not None:
            self._live.stop()
            self._live = None


class Foot(_Drawn):
    """A few lines that stay below everything else while a stage runs."""

    def __init__(self, stage: str) -> None:
        """Start with nothing drawn."""
        self._stage = stage
        self._drawn = 0.0

    def draw(self, progress: Progress) -> None:
        """Show how far the stage has come, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._drawn < REDRAW_SECONDS:
            return
        self._drawn = now
        from rich.text import Text

        available = text.width(sys.stderr) or 80
        rows = [Text.assemble(*parts) for parts in rows_of(self._stage, progress, available)]
        # Refreshed by hand: a thread of its own would draw while another program writes.
        live = self._live or self._start_live(auto_refresh=False)
        live.update(Text("\n").join(rows), refresh=True)


class Waiting(_Drawn):
    """A line that moves while something runs that cannot say how far it is; only on a terminal."""

    def __init__(self, doing: str) -> None:
        """Draw the line, with the time that has passed, until `close` or the next line of text."""
        if not sys.stderr.isatty():
            return
        from rich import progress

        moving = progress.Progress(
            progress.SpinnerColumn("line"),
            progress.TextColumn(f"  {doing:<10}"),
            progress.TimeElapsedColumn(),
        )
        moving.add_task("")
        self._start_live(refresh_per_second=2).update(moving, refresh=True)


def rows_of(stage: str, progress: Progress, available: int) -> list[tuple[Part, ...]]:
    """Return the lines of the foot, each at most `available` characters."""
    head = f"  {stage:<10} "
    # Never as wide as the terminal: a full line would wrap, and the redraw would miss it.
    available -= len(head) + 1
    rows: list[tuple[Part, ...]] = [
        (text.bold(head), text.shorten(", ".join(measures(progress)), available))
    ]
    # Cut in the middle: an action's beginning says what is done, its end to which file.
    for action in progress.running[:MOST]:
        lead = text.detail(f"  {text.as_duration(action.seconds):>10}   ")
        rows.append((lead, text.shorten(action.name, available - 2, "middle")))
    if not progress.running and progress.doing:
        doing = text.shorten(progress.doing, available, "middle")
        rows.append((text.detail(" " * len(head) + doing),))
    return rows


def measures(progress: Progress) -> list[str]:
    """Return what is known of a piece of work in numbers, the most important first."""
    done, total, unit = progress.done, progress.total, progress.unit
    share = f" ({done / total:.0%})" if total else ""
    of = f" of {total:,}" if total is not None else ""
    known = [f"{done:,}{of} {unit}{share}"]
    if progress.failures:
        known.append(f"{progress.failures} failed")
    if progress.remaining is not None:
        known.append(f"about {text.as_duration(progress.remaining)} left")
    if progress.held:
        known.append(f"{progress.held / GIB:.1f} of {progress.room / GIB:.0f} GiB")
    return known
