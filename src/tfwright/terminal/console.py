"""What people read while a build runs: a step trail, and errors in three parts."""

import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from tfwright.errors import TfwrightError
from tfwright.progress import Progress
from tfwright.terminal.text import tell
from tfwright.tools.process import capacity

if TYPE_CHECKING:
    from tqdm import tqdm

    from tfwright.pipeline.job import BuildRequest
    from tfwright.pipeline.stage import Result

LINE_SECONDS = 30.0
"""How often progress is told where there is no terminal to draw a bar on."""
MOST_CAUSES = 3
"""How many possible causes of a failure are told."""


class Terminal:
    """A listener that shows one line a stage, and a live bar for long ones, on stderr."""

    def __init__(self) -> None:
        """Start with nothing shown."""
        self._stage = self._why = ""
        self._bar: tqdm[Any] | None = None
        self._told = 0.0

    def started(self, stage: str, why: str) -> None:
        """Remember the stage; its line is written when it is done."""
        self._stage, self._why = stage, why
        self._told = time.monotonic()

    def kept(self, stage: str) -> None:
        """Show that a stage was skipped."""
        tell(f"  {stage:<10} kept")

    def finished(self, stage: str, seconds: float) -> None:
        """Show a stage's time and why it ran."""
        self._close()
        tell(f"  {stage:<10} {seconds:7.1f} s   {self._why}")

    def note(self, text: str) -> None:
        """Show a fact that the reader should know."""
        self._close()
        tell(f"  {self._stage:<10}   - {text}")

    def progress(self, progress: Progress) -> None:
        """Draw the bar, or write a line now and then."""
        if sys.stderr.isatty():
            self._draw(progress)
        elif time.monotonic() - self._told >= LINE_SECONDS:
            self._told = time.monotonic()
            tell(f"  {self._stage:<10} {_sentence(progress)}")

    def _draw(self, progress: Progress) -> None:
        """Move the live bar."""
        if self._bar is None:
            from tqdm import tqdm  # noqa: PLC0415 start-up is part of the product

            self._bar = tqdm(
                desc=f"  {self._stage}",
                leave=False,
                dynamic_ncols=True,
                unit=progress.unit,
                unit_scale=progress.unit == "B",
            )
        self._bar.total = progress.total
        self._bar.n = progress.done
        told = (_failures(progress), _memory(progress), progress.doing[:60])
        self._bar.set_postfix_str(", ".join(filter(None, told)), refresh=True)

    def _close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _sentence(progress: Progress) -> str:
    """Say progress in one line of text."""
    total = f" of {progress.total:,}" if progress.total is not None else ""
    told = ", ".join(
        filter(
            None,
            (f"{progress.done:,}{total} {progress.unit}", _failures(progress), _memory(progress)),
        )
    )
    return f"{told}: {progress.doing}" if progress.doing else told


def _failures(progress: Progress) -> str:
    return f"{progress.failures} failed" if progress.failures else ""


def _memory(progress: Progress) -> str:
    """Say how much of the memory the work holds; nothing where that is not known."""
    return (
        f"{progress.held / capacity.GIB:.1f} of {progress.room / capacity.GIB:.0f} GiB"
        if progress.held
        else ""
    )


def announce(job: "BuildRequest") -> None:
    """Say what is going to be built."""
    tell(f"{job.recipe.name}: {job.recipe.summary}")


def conclude(job: "BuildRequest", result: "Result") -> None:
    """Say what was made: the wheel on stdout, for scripts."""
    wheel = getattr(result, "wheel", None)
    if job.until == "publish" and wheel is not None:
        tell(f"  sha256 {wheel.sha256}, {wheel.size:,} bytes")
        print(wheel.path)
    else:
        tell(f"  stopped after {job.until}, as asked")


@contextmanager
def ending_gently() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that a service's stop leaves nothing running."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def explain(fault: TfwrightError, resume: str = "") -> None:
    """Write an error: what happened, what to do, where to look, how to resume."""
    evidence = fault.evidence
    stage = f" in {fault.stage}" if fault.stage else ""
    tell(f"\nFailed{stage}: {fault.what}")
    for line in evidence.lines:
        tell(f"    | {line}")
    tell(f"  do:     {fault.remedy}")
    if evidence.where:
        tell(f"  where:  {evidence.where}")
    if evidence.command:
        status = f"  (status {evidence.status})" if evidence.status is not None else ""
        tell(f"  ran:    {shlex.join(evidence.command)}{status}")
    if evidence.log:
        tell(f"  log:    {evidence.log}")
        _suspect(evidence.log)
    if resume:
        tell(f"  resume: {resume}")


def _suspect(log: Path) -> None:
    """Add what the catalogue knows of the first error in a failed stage's log."""
    from tfwright.diagnosis import logs  # noqa: PLC0415 only a failure needs it
    from tfwright.terminal.diagnose import tell_match  # noqa: PLC0415 the same

    if log.is_file():
        found = logs.diagnose(str(log))
        for match in [match for match in found.matches if match.explains][:1]:
            tell_match(match, log.parent)


def interrupted(resume: str = "") -> None:
    """Say that the user stopped the build, and that nothing is lost."""
    tell("\nStopped; what was finished is kept.")
    if resume:
        tell(f"  resume: {resume}")
