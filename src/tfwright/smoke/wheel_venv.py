"""The venv that a wheel is tried in: how it is made and filled, and how a failure is reported.

The verify stage and `invoke smoke` try wheels in the same way. They differ in where their packages
come from: verify has pinned ones out of the vault, smoke asks the package index.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfwright.errors import Evidence, WheelError
from tfwright.smoke import PROGRAMS, run
from tfwright.smoke.run import TrialOutcome
from tfwright.tools.process import environment, runner
from tfwright.tools.process.command import Command
from tfwright.tools.python import package_clients


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

    def creation(self, interpreter: str, version: str, home: Path) -> Command:
        """Return the making of the venv; Python 2 has no venv module of its own."""
        # Of the interpreter itself: its own module makes a venv of exactly its version.
        module = "virtualenv" if version.startswith("2.") else "venv"
        argv = (interpreter, "-m", module, str(self.place))
        return Command(argv, self.place.parent, environment.clean(home))

    def pip(self, *arguments: str) -> Command:
        """Return a run of its pip that may ask the package index, through this host's proxies."""
        # Only here: a proxy's address may hold a password,
        # which no program of the wheel needs.
        env = package_clients.of("pip", self.programs)
        return Command(self._pip(arguments), self.place.parent, env)

    def pip_offline(self, home: Path, *arguments: str) -> Command:
        """Return a run of its pip that needs no network and gets no proxies' passwords."""
        env = environment.clean(home, self.programs)
        return Command(self._pip(arguments), self.place.parent, env)

    def _pip(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        # "python -m pip" works where the path is too long for the first line of a script.
        return package_clients.pip(self.python, *arguments, cwd=self.place.parent).argv

    def execution(self, *arguments: str, home: Path, extra: Mapping[str, str]) -> Command:
        """Return a run of its Python."""
        # A clean environment: PYTHONPATH or LD_PRELOAD of the caller would change the result.
        env = environment.clean(home, self.programs, extra=extra)
        return Command((str(self.python), *arguments), self.place.parent, env)

    def program(self, name: str, module: str, home: Path, extra: Mapping[str, str]) -> Command:
        """Return the run of a smoke program on a module."""
        return self.execution(str(run.program(name)), module, home=home, extra=extra)

    def refusal(self, wheel: str, name: str, why: str, evidence: Evidence) -> WheelError:
        """Return the error that a wheel failed in something that was done with it."""
        return WheelError(
            f"{wheel} fails '{name}': {why}",
            remedy=f"Look into the log; the venv is kept, its Python is {self.python}.",
            evidence=evidence,
        )

    def refused(self, wheel: str, outcome: TrialOutcome, name: str = "") -> WheelError:
        """Return the error that a smoke program failed."""
        log = Path(outcome.log)
        # Named as a person would type it to see the failure again.
        command = (str(self.python), str(PROGRAMS / f"{outcome.program}.py"))
        evidence = Evidence(command=command, log=log, lines=runner.last_lines(log))
        return self.refusal(wheel, name or outcome.program, outcome.reason, evidence)
