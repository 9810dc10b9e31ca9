"""The stages by name, and how a running one reports; the listener decides what is shown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args


@dataclass(frozen=True)
class RunningAction:
    """One action that Bazel is executing now."""

    name: str
    """As Bazel prints it: ``Compiling tensorflow/core/kernels/cwise_op_add_1.cc``."""
    seconds: float
    """How long it has been running."""


@dataclass(frozen=True)
class Progress:
    """How far a long piece of work has come."""

    done: int
    total: int | None
    """None while it is not known."""
    unit: str = "actions"
    doing: str = ""
    """What is under way now: a Bazel action, a file."""
    failures: int = 0
    # Shown while a build compiles: memory is what most often ends a build of TensorFlow.
    held: int = 0
    """Bytes of memory that the work holds now; 0 while, or where, that is not known."""
    room: int = 0
    """Bytes of memory that the work may use."""
    running: tuple[RunningAction, ...] = ()
    """The actions that have been running longest, longest first; empty where that is not known."""
    remaining: float | None = None
    """Seconds that the work is expected to take from now on; None where nothing is known of it."""


Report = Callable[[Progress], None]
"""Takes how far a piece of work has come."""


class Listener:
    """Receives what happens in a build, in order, and decides nothing; this one ignores it."""

    def started(self, stage: str, why: str) -> None:
        """Learn that `stage` runs, and why it has to."""

    def skipped(self, stage: str) -> None:
        """Learn that what `stage` made before still holds."""

    def finished(self, stage: str, seconds: float) -> None:
        """Learn that `stage` is done after so many seconds."""

    def note(self, text: str) -> None:
        """Learn a fact that the reader should know: a moved branch, a stub, a choice."""

    def progress(self, progress: Progress) -> None:
        """Learn how far the running stage has come; may be called many times a second."""


SILENCE = Listener()


Stage = Literal[
    "check",
    "fetch",
    "source",
    "configure",
    "compile",
    "nccl",
    "package",
    "seal",
    "verify",
    "publish",
]
STAGES: tuple[Stage, ...] = get_args(Stage)
