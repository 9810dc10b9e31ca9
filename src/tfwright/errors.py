"""What can go wrong, sorted by who must act, each kind with its own exit status."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tfwright.printable import printable, printable_lines

INTERRUPTED_STATUS = 130
"""Exit status after Ctrl-C, as shells report it (128 + SIGINT)."""
ROOM = (
    "Free some space ('invoke vault --gc' helps), or set build_out in the host file to a larger "
    "disk."
)
_RECIPE = "\ue000"
"""Stands for the option ``--recipe`` in a command: a letter for private use, so in no message."""


def invoke(command: str) -> str:
    """Return a command for a remedy, about the recipe that the error will turn out to be about.

    What fails below a command or the pipeline knows no recipe, and without ``--recipe`` the command
    would be about the demo.
    """
    return f"invoke {command}{_RECIPE}"


def with_recipe(remedy: str, recipe: str) -> str:
    """Put ``--recipe`` into the commands that `invoke` made; leave it out for no recipe."""
    return remedy.replace(_RECIPE, f" --recipe {recipe}" if recipe else "")


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


def in_one_line(fault: Exception) -> str:
    """Return what happened, in a line, for work that goes on with the next thing."""
    if isinstance(fault, TfwrightError):
        return fault.what
    return f"a flaw in tfwright: {type(fault).__name__}: {fault}"


class TfwrightError(Exception):
    """An expected failure: what happened, what to do about it, and the evidence."""

    exit_status: ClassVar[int] = 1
    who: ClassVar[str] = "tfwright"

    def __init__(
        self,
        what: str,
        *,
        remedy: str,
        evidence: Evidence | None = None,
        where: object = "",
        lines: Sequence[str] = (),
    ) -> None:
        """Describe the failure in one sentence, the remedy in another.

        `where` and `lines` are what `Evidence` says, for an error that has no more of it.
        """
        # Messages quote recipes, servers and archives, which may hold escape sequences.
        self.what = printable_lines(what)
        super().__init__(self.what)
        self.template = remedy
        """The remedy with commands as `invoke` makes them, which know no recipe yet."""
        self.evidence = evidence or Evidence(str(where), lines=lines)
        self.stage = ""
        """The stage that failed; set by the engine."""
        self.lasting = False
        """Whether the same command fails again on this host, whatever is installed there."""
        self.recipe = ""
        """What ``--recipe`` takes for the recipe that the commands of the remedy are about."""

    @property
    def remedy(self) -> str:
        """What to do about it, with whole commands."""
        return printable_lines(with_recipe(self.template, self.recipe))


# The statuses from here on are part of the interface: README.md lists them for scripts.
class RecipeError(TfwrightError):
    """The recipe, a patch or the host file must change."""

    exit_status = 2
    who = "recipe"


class HostError(TfwrightError):
    """This host lacks something, or has no room left."""

    exit_status = 3
    who = "host"


class FullDiskError(HostError):
    """A disk has no room left."""

    def __init__(
        self, what: str, evidence: Evidence | None = None, place: Path | None = None
    ) -> None:
        """Say what could not be written, and the file or directory where that is known."""
        super().__init__(f"The disk is full: {what}", remedy=ROOM, evidence=evidence)
        self.place = place


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
