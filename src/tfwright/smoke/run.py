"""The venv that a wheel is tried in, and the smoke programs: each within a time limit.

The verify stage and `invoke smoke` try wheels in the same way. They differ in where their packages
come from: verify has pinned ones out of the vault, smoke asks the package index.
"""

import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from tfwright.documents.recipe import SMOKE
from tfwright.documents.toml import Table
from tfwright.errors import Evidence, RecipeError, WheelError
from tfwright.printable import printable
from tfwright.smoke import PROGRAMS
from tfwright.tools import files
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command, clean_environment
from tfwright.tools.python import package_clients, packages

ORDER = ("imports", *SMOKE)
"""Their order where no recipe says which: the first shows whether the module imports at all."""
# No recipe sets it: a program that hangs must end on every host.
SECONDS = 900.0
"""How long a program may take.

The slowest takes half a minute; a GPU may first compile its kernels for many minutes.
"""
LONGEST_REASON = 500
UNSTARTED = "Start again, which makes the venv again; its disk must not be mounted 'noexec'."
"""The remedy for a venv whose Python is not there, or may not be run."""

USUAL_CAUSES: dict[int, str] = {
    signal.SIGILL: "usually the wheel needs instructions, such as AVX, that this CPU has not",
    signal.SIGSEGV: "usually a library (CUDA, numpy, protobuf) is of another version "
    "than the wheel was built with",
    signal.SIGABRT: "a check of TensorFlow's own failed; its log says which, often "
    "an instruction set or a library's version",
    signal.SIGBUS: "usually a file that is mapped into memory was cut short: the disk was full "
    "when the wheel was installed",
    signal.SIGFPE: "a division by zero in machine code",
    signal.SIGKILL: "the system ended it, usually for lack of memory",
}

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Status = Literal["passed", "skipped", "failed"]


class ProgramVerdict(Table):
    """What a program says in the line of JSON that it ends with, or what is said in its place."""

    status: Status
    reason: str
    numbers: dict[str, JsonValue]


@dataclass(frozen=True)
class TrialOutcome:
    """What became of one program."""

    program: str
    status: Status
    reason: str
    """What the program saw, or why it could not, in a sentence."""
    seconds: float = 0.0
    numbers: Mapping[str, JsonValue] = field(default_factory=dict)
    log: str = ""
    """The file with everything that it printed."""


def program_path(name: str) -> Path:
    """Return a smoke program; raise RecipeError with the known names for any other."""
    if name not in ORDER:
        raise RecipeError(
            f"verify.smoke: {name!r} is not a smoke program",
            remedy=f"Use one of: {', '.join(ORDER)}.",
        )
    return PROGRAMS / f"{name}.py"


def run(
    name: str,
    command: Command,
    log: Path,
    seconds: float | None = SECONDS,
    *,
    by_status: bool = False,
) -> TrialOutcome:
    """Run a program for at most `seconds`, and return what it says, or how it ended.

    With `by_status` it says nothing: it passes if it exits with 0, whatever its last line is.
    """
    # Not the time of day, which a clock that is set would change.
    start = time.monotonic()
    try:
        status = runner.attempt(command, log, remedy=UNSTARTED, timeout=seconds)
    except TimeoutError:
        verdict = _failed_verdict(f"it hung, and was ended after {seconds:g} s")
    else:
        verdict = _verdict(status, log, by_status=by_status)
    spent = time.monotonic() - start
    # In one line: the wheel's own code may print anything.
    reason = printable(" ".join(verdict.reason.split()), LONGEST_REASON)
    return TrialOutcome(name, verdict.status, reason, spent, verdict.numbers, str(log))


def _failed_verdict(reason: str) -> ProgramVerdict:
    return ProgramVerdict(status="failed", reason=reason, numbers={})


def _verdict(status: int, log: Path, *, by_status: bool) -> ProgramVerdict:
    """Believe a program that it did well only if it also ended well."""
    printed = None
    # The last result: TensorFlow may have the last word on stderr, and a native library may print
    # anything before it crashes.
    lines = files.tail(log).splitlines()
    for line in () if by_status else lines:
        if line.startswith("{"):
            with suppress(ValidationError):
                printed = ProgramVerdict.model_validate_json(line)
    if status < 0:
        # A crash at exit, in a library's own cleanup, still breaks whoever uses the wheel.
        done = printed is not None and printed.status == "passed"
        after = ", after it had done its work" if done else ""
        cause = USUAL_CAUSES.get(-status, "its log says more")
        # The real-time signals have no name.
        names = {each.value: each.name for each in signal.Signals}
        name = names.get(-status, f"signal {-status}")
        return _failed_verdict(f"it crashed ({name}{after}): {cause}")
    if by_status:
        output_lines = [line for line in lines if line.strip()] or [f"exited with status {status}"]
        if status == 0:
            return ProgramVerdict(status="passed", reason=output_lines[-1], numbers={})
        return _failed_verdict(output_lines[-1])
    # A program may print that it passed and fail afterwards; its exit status decides.
    if printed is None or (printed.status == "passed" and status != 0):
        return _failed_verdict(
            f"it came to no result (exit status {status}): {runner.last_line(log)}"
        )
    return printed


class Point(Table):
    """How fast a device multiplied square matrices."""

    size: Annotated[int, Field(gt=0)]
    """Rows and columns."""
    seconds: Positive
    """Of one product."""
    gflops: Positive
    """Thousand million operations a second."""


_CURVES = TypeAdapter(
    dict[Literal["cpu", "gpu"], Annotated[list[Point], Field(min_length=1, max_length=100)]]
)


def curves(outcomes: Sequence[TrialOutcome]) -> dict[str, list[Point]]:
    """Return the curves of the sweep by device; none if it was not run, or says something else."""
    # Only the sweep measures curves, and only a whole one is drawn.
    for outcome in outcomes:
        if outcome.program == "sweep" and outcome.status == "passed":
            # The numbers come from a process that ran the wheel's code: they may be anything.
            try:
                found = _CURVES.validate_python(outcome.numbers.get("curves"))
            except ValidationError:
                return {}
            return {name.upper(): points for name, points in found.items()}
    return {}


def pip_sources(stores: Sequence[Path], pins: Sequence[str]) -> tuple[str, ...]:
    """Return where pip finds a wheel's packages in vaults: without pins nothing of it is there."""
    return packages.offline_options(stores) if pins else ("--no-deps", "--no-index")


@dataclass(frozen=True)
class WheelVenv:
    """A venv with a wheel in it, made or still to be made."""

    place: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.place / "bin/python"

    @property
    def programs(self) -> tuple[Path]:
        """The directory that comes first on the PATH of whatever runs in it."""
        return (self.place / "bin",)

    def pip_offline(self, home: Path, *arguments: str) -> Command:
        """Return a run of its pip that needs no network and gets no proxies' passwords."""
        command = package_clients.pip_command(self.python, *arguments, cwd=self.place.parent)
        return replace(command, env=clean_environment(home, self.programs))

    def python_command(self, *arguments: str, home: Path, extra: Mapping[str, str]) -> Command:
        """Return a run of its Python."""
        # A clean environment: PYTHONPATH or LD_PRELOAD of the caller would change the result.
        env = clean_environment(home, self.programs, extra=extra)
        return Command((str(self.python), *arguments), self.place.parent, env)

    def trial_error(
        self, wheel: str, outcome: TrialOutcome, command: tuple[str, ...] = ()
    ) -> WheelError:
        """Return the error that a wheel failed in something that was done with it."""
        log = Path(outcome.log)
        # Named as a person would type it to see the failure again.
        command = command or (str(self.python), str(PROGRAMS / f"{outcome.program}.py"))
        return WheelError(
            f"{wheel} fails '{outcome.program}': {outcome.reason}",
            remedy=f"Look into the log; the venv is kept, its Python is {self.python}.",
            evidence=Evidence(command=command, log=log, lines=runner.last_lines(log)),
        )
