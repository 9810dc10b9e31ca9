"""What people read while a build runs: the step trail, and errors in three parts."""

import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from tfwright.errors import Evidence, TfwrightError
from tfwright.progress import Listener, Progress
from tfwright.terminal import text
from tfwright.terminal.foot import Foot, Waiting, measures
from tfwright.terminal.text import tell

if TYPE_CHECKING:
    from tqdm import tqdm

WHY = 27
"""Characters in front of the reason why a stage ran."""
LINE_SECONDS = 30.0
"""How often progress is reported without a terminal to draw on."""


class Terminal(Listener):
    """A listener that shows one line for each stage, and live progress for long ones, on stderr."""

    def __init__(self) -> None:
        """Start with nothing shown."""
        self._stage = self._why = ""
        self._shown: Foot | Waiting | tqdm[Any] | None = None
        # Of each unit: how far its work was, and when a line said so, or it began.
        self._heard = dict[str, tuple[int, float]]()

    def started(self, stage: str, why: str) -> None:
        """Remember the stage; its line is written when it ends."""
        self._stage, self._why = stage, why
        self._heard.clear()
        self._close()
        self._shown = Waiting(stage)

    def skipped(self, stage: str) -> None:
        """Show that a stage was skipped, because what it made before still holds."""
        tell(f"  {stage:<10} kept", text.DETAIL)

    # One line when it is over: a line at the start would be torn by the notes in between.
    def finished(self, stage: str, seconds: float) -> None:
        """Show how long a stage took and why it ran."""
        self._close()
        text.line(
            text.good(f"  {stage:<10}"),
            f" {text.as_duration(seconds):>11}   ",
            text.detail(self._why),
            to=sys.stderr,
            hang=WHY,
        )

    def note(self, text_of_note: str) -> None:
        """Show a fact that the reader should know."""
        silent = isinstance(self._shown, Waiting)
        self._close()
        # Only builds have stages.
        lead = f"  {self._stage:<10} - " if self._stage else "  - "
        text.tell_labelled(text.warning(lead), text_of_note, len(lead))
        if silent:
            self._shown = Waiting(self._stage)

    def progress(self, progress: Progress) -> None:
        """Draw the foot or the bar; without a terminal, write a line now and then."""
        if isinstance(self._shown, Waiting):
            self._close()
        # In a CI log a redrawn line would be thousands of lines.
        if not sys.stderr.isatty():
            now = time.monotonic()
            done, last_line = self._heard.get(progress.unit, (progress.done + 1, now))
            # Other work begins, and one that is over soon needs no line.
            if progress.done < done:
                last_line = now
            elif now - last_line >= LINE_SECONDS:
                last_line = now
                known = ", ".join(measures(progress))
                doing = f": {progress.doing}" if progress.doing else ""
                # Only builds have stages.
                lead = f"  {self._stage:<10} " if self._stage else "    "
                tell(f"{lead}{known}{doing}")
            self._heard[progress.unit] = progress.done, last_line
        elif progress.unit == "actions":
            if not isinstance(self._shown, Foot):
                self._close()
                self._shown = Foot(self._stage)
            self._shown.draw(progress)
        else:
            self._draw_bar(progress)

    def _draw_bar(self, progress: Progress) -> None:
        """Move the bar of a download or of a count."""
        from tqdm import tqdm

        bar = self._shown
        # One stage counts bytes of a download first, and archives afterwards.
        if not isinstance(bar, tqdm) or bar.unit != progress.unit:
            self._close()
            # Bazel's actions have the foot; downloads and counts a bar, with rate and time left.
            self._shown = bar = tqdm(
                desc=f"  {self._stage}",
                leave=False,
                dynamic_ncols=True,
                unit=progress.unit,
                unit_scale=progress.unit == "B",
            )
            text.before_next_line(self._close)
        bar.total = progress.total
        bar.n = progress.done
        known = (*measures(progress)[1:], text.shorten(progress.doing, 60, "middle"))
        bar.set_postfix_str(", ".join(filter(None, known)), refresh=True)
        # Outside of a stage nothing else says that it is over.
        if progress.total is not None and progress.done >= progress.total:
            self._close()

    def _close(self) -> None:
        """Take the foot, the bar or the moving line away."""
        if self._shown is not None:
            self._shown.close()
            self._shown = None


def working(doing: str) -> AbstractContextManager[object]:
    """Draw a line that moves, on a terminal, until the block ends."""
    return closing(Waiting(doing))


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that a service's stop leaves nothing running."""

    # The handlers of Ctrl-C then stop children and remove half-made files for both.
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def show_error(
    fault: TfwrightError, resume: str = "", show_cause: Callable[[Evidence], None] | None = None
) -> None:
    """Write an error: what happened, what to do, where to look, how to resume.

    `show_cause` adds what is known of the root error in a log.
    """
    evidence = fault.evidence
    stage = f" in {fault.stage}" if fault.stage else ""
    text.line(to=sys.stderr)
    text.tell_labelled(text.bad(f"Failed{stage}: "), fault.what, 4)
    # The lines of the log come first: they are what happened.
    for row in evidence.lines:
        tell(f"    | {row}", text.DETAIL)
    text.tell_labelled("  do:", fault.remedy)
    if evidence.where:
        text.tell_labelled("  where:", evidence.where)
    if evidence.command:
        status = f"  (status {evidence.status})" if evidence.status is not None else ""
        ran = f"  ran:    {shlex.join(evidence.command)}{status}"
        tell(ran, whole=True)
    if evidence.log:
        tell(f"  log:    {evidence.log}", whole=True)
        if show_cause:
            show_cause(evidence)
    if resume:
        tell(f"  resume: {resume}", whole=True)


def show_interrupted(resume: str = "") -> None:
    """Say that the user stopped the build, and that nothing is lost."""
    # Only builds have stages; a lint or a pin begins again.
    tell("\nStopped; finished stages are kept." if resume else "\nStopped.")
    if resume:
        tell(f"  resume: {resume}", whole=True)
