"""What is redrawn at the bottom of the terminal: Bazel's actions, a bar, or a line that moves."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tfwright.progress import Progress
from tfwright.terminal import text
from tfwright.terminal.text import Part

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

GIB = 1024**3
MOST = 4
"""Running actions that are shown; a terminal of 24 lines keeps most of its history."""
BAR, BEFORE = 20, 45
"""Characters of a bar, and of all that stands in front of its text."""
REDRAW_SECONDS = 0.2
"""Bazel prints hundreds of times a second; people do not read faster than this."""


class _Drawn:
    """What is below everything else, until it is taken away."""

    _live: "Live | None" = None
    _drawn = 0.0

    def _shown(self, **refresh: Any) -> "Live":  # noqa: ANN401 rich's
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

    def _redraw(self, content: "Callable[[], RenderableType]") -> None:
        """Draw what `content` returns, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._drawn >= REDRAW_SECONDS:
            self._drawn = now
            # Refreshed by hand: a thread of its own would draw while another program writes.
            live = self._live or self._shown(auto_refresh=False)
            live.update(content(), refresh=True)

    def close(self) -> None:
        """Take it away, so that the next line takes its place."""
        if self._live is not None:
            self._live.stop()
            self._live = None


class Foot(_Drawn):
    """A few lines that stay below everything else while a stage runs."""

    unit = "actions"

    def __init__(self, stage: str) -> None:
        """Start with nothing drawn."""
        self._stage = stage

    def draw(self, progress: Progress) -> None:
        """Show how far the stage has come."""
        from rich.text import Text

        def rows() -> Text:
            available = text.width(sys.stderr) or 80
            parts = rows_of(self._stage, progress, available)
            return Text("\n").join(Text.assemble(*row) for row in parts)

        self._redraw(rows)


class Bar(_Drawn):
    """How far a download or a count has come, and the time that is left."""

    def __init__(self, stage: str, unit: str) -> None:
        """Start with nothing drawn."""
        from rich import progress

        self.unit = unit
        self._bar = progress.Progress(
            progress.TextColumn(f"  {stage:<10}"),
            progress.BarColumn(BAR),
            progress.TimeRemainingColumn(),
            # The names of files hold no markup.
            progress.TextColumn("{task.description}", markup=False),
        )
        self._task = self._bar.add_task("")

    def draw(self, progress: Progress) -> None:
        """Move the bar."""
        said = ", ".join(filter(None, (*measures(progress), progress.doing)))
        room = max(text.MARGIN, (text.width(sys.stderr) or 80) - BEFORE)
        self._bar.update(
            self._task,
            total=progress.total,
            completed=progress.done,
            description=text.shortened(said, room),
        )
        self._redraw(lambda: self._bar)
        # Outside of a stage nothing else says that it is over.
        if progress.total is not None and progress.done >= progress.total:
            self.close()


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
        self._shown(refresh_per_second=2).update(moving, refresh=True)


def rows_of(stage: str, progress: Progress, available: int) -> list[tuple[Part, ...]]:
    """Return the lines of the foot, each at most `available` characters."""
    head = f"  {stage:<10} "
    # Never as wide as the terminal: a full line would wrap, and the redraw would miss it.
    available -= len(head) + 1
    rows: list[tuple[Part, ...]] = [
        (text.bold(head), text.shortened(", ".join(measures(progress)), available))
    ]
    # Cut in the middle: an action's beginning says what is done, its end to which file.
    for action in progress.running[:MOST]:
        lead = text.detail(f"  {text.as_duration(action.seconds):>10}   ")
        rows.append((lead, text.shortened(action.name, available - 2, "middle")))
    if not progress.running and progress.doing:
        doing = text.shortened(progress.doing, available, "middle")
        rows.append((text.detail(" " * len(head) + doing),))
    return rows


def measures(progress: Progress) -> list[str]:
    """Return what is known of a piece of work in numbers, the most important first."""
    done, total, unit = progress.done, progress.total, progress.unit
    written = text.as_size if unit == "B" else "{:,}".format
    of = f" of {written(total)}" if total is not None else ""
    share = f" ({done / total:.0%})" if total else ""
    counted = "" if unit == "B" else f" {unit}"
    known = [f"{written(done)}{of}{counted}{share}"]
    if progress.failures:
        known.append(f"{progress.failures} failed")
    if progress.remaining is not None:
        known.append(f"about {text.as_duration(progress.remaining)} left")
    if progress.held:
        known.append(f"{progress.held / GIB:.1f} of {progress.room / GIB:.0f} GiB")
    return known
