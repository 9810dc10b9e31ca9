"""What can go wrong, sorted by who must act, each kind with its own exit status."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tfwright.printable import printable, printable_lines

INTERRUPTED_STATUS = 130
"""Exit status after Ctrl-C, as shells report it (128 + SIGINT)."""


@dataclass(frozen=True)
class Evidence:
    """Where the reader can check what an error claims."""

    where: str = ""
    """File and line of a faulty document, as ``recipes/x.toml:12``."""
    command: Sequence[str] = ()
    status: int | None = None
    log: Path | None = None
    lines: Sequence[str] = ()
    """The lines that show the fault: the last ones of a log, or the ones around it."""
    failure: object | None = None
    """What the stage read from its log: a `diagnosis.reader.FailureRecord`.

    Errors lie below diagnosis, so that the class is not named here.
    """

    # Here and not where it is shown: reports, pages and JSON quote the same lines.
    def __post_init__(self) -> None:
        """Make visible what a terminal would obey: lines of a log are written by strangers."""
        # The only way to set a field of a frozen dataclass.
        object.__setattr__(self, "where", printable(self.where))
        lines = [printable_lines(line) for line in self.lines]
        object.__setattr__(self, "lines", tuple(lines) if isinstance(self.lines, tuple) else lines)


class TfwrightError(Exception):
    """An expected failure: what happened, what to do about it, and the evidence."""

    exit_status: ClassVar[int] = 1
    who: ClassVar[str] = "tfwright"

    def __init__(self, what: str, *, remedy: str, evidence: Evidence | None = None) -> None:
        """Describe the failure in one sentence, the remedy in another."""
        # Messages quote recipes, servers and archives, which may hold escape sequences.
        self.what = printable_lines(what)
        self.remedy = printable_lines(remedy)
        super().__init__(self.what)
        self.evidence = evidence or Evidence()
        self.stage = ""
        """The stage that failed; set by the engine."""


# The statuses from here on are part of the interface: README.md lists them for scripts.
class RecipeError(TfwrightError):
    """The recipe, a patch or the host file must change."""

    exit_status = 2
    who = "recipe"


class HostError(TfwrightError):
    """This host lacks something, or has no room left."""

    exit_status = 3
    who = "host"


class SupplyError(TfwrightError):
    """An input could not be obtained, or is not the one that was pinned."""

    exit_status = 4
    who = "supply"


class SilentServerError(SupplyError):
    """A server that could not be reached, which would be the same for any other file of it."""


class ToolError(TfwrightError):
    """An outside program (git, Bazel, ./configure, pip) failed."""

    exit_status = 5
    who = "tool"


class WheelError(TfwrightError):
    """The wheel is not what the recipe promised."""

    exit_status = 6
    who = "wheel"
