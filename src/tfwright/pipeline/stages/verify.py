"""Reads the wheel, installs it in a fresh venv of the target Python, and runs it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tfwright.documents.recipe import VerifyTable
from tfwright.errors import Evidence, RecipeError, ToolError, WheelError
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Check, HostFacts, SealedWheel, Tree, Verdict
from tfwright.pipeline.stage import Artefact, Step
from tfwright.tools import files
from tfwright.tools.process import environment, runner
from tfwright.tools.process.runner import Command
from tfwright.tools.python import packages
from tfwright.trial import run as trying
from tfwright.wheel import archive
from tfwright.wheel.inspect import readings
from tfwright.wheel.inspect.readings import Reading


class Trial(NamedTuple):
    """Something that is done with the wheel."""

    name: str
    command: Command


def run(job: Job, table: VerifyTable, host: HostFacts, tree: Tree, sealed: SealedWheel) -> Verdict:
    """Try the wheel as its users will; raise WheelError at the first thing that it does not stand."""
    wheel = sealed.wheel.path
    trials, programs = _trials(job, table, str(wheel)), _programs(job, table)
    checks = list(_read(sealed.wheel, table, host.python))
    files.remove(_venv(job))
    _venv(job).parent.mkdir(parents=True, exist_ok=True)
    _copy_tests(job, table, tree.path)
    runner.run(
        _creation(job, str(host.interpreter), host.python),
        job.log("verify-venv"),
        remedy=f"Repair {host.interpreter}: it cannot make a venv.",
    )
    checks += [_pass(job, wheel, trial) for trial in trials]
    checks += [_smoke(job, wheel, program) for program in programs]
    # Kept where something failed, for whoever looks into it.
    files.remove(_venv(job))
    return Verdict(wheel=sealed.wheel, checks=tuple(checks))


def inputs(table: VerifyTable) -> Mapping[str, str]:
    """Return the digests of the smoke programs: of all, since they share code."""
    if not table.smoke:
        return {}
    programs = sorted(trying.PROGRAMS.glob("*.py"))
    return {f"smoke/{path.name}": files.sha256(path) for path in programs}


def steps(job: Job, table: VerifyTable, host: HostFacts | None) -> Sequence[Step]:
    """Return the programs that are run; what only a build knows stands as ``@NAME@``."""
    trials = _trials(job, table, "@WHEEL@") + _programs(job, table)
    return (
        _creation(job, "@PYTHON@", host.python if host else ""),
        *(trial.command for trial in trials),
    )


def _read(wheel: Artefact, table: VerifyTable, python: str) -> Iterator[Check]:
    """Insist on what can be seen without running anything."""
    with archive.opened(wheel.path) as content:
        for reading in readings.read(wheel.path, content, table, python):
            yield _held(wheel.path, reading)
    if table.size is not None:
        excess = (
            [f"{wheel.size:,} bytes, {table.size:,} are allowed"] if wheel.size > table.size else []
        )
        yield _held(wheel.path, Reading("size", excess, f"{wheel.size:,} bytes"))


def _held(wheel: Path, reading: Reading) -> Check:
    """Return a check that found nothing; raise WheelError with what it found."""
    name, faults, detail = reading
    if faults:
        remedy = "Correct the recipe where it decides this, or look at what build_pip_package put together."
        raise WheelError(
            f"{wheel.name}: {name}: {faults[0]}",
            remedy=remedy,
            evidence=Evidence(where=str(wheel), lines=faults),
        )
    return Check(name=name, passed=True, detail=detail)


def _trials(job: Job, table: VerifyTable, wheel: str) -> list[Trial]:
    """Return the installation, the imports and the tree's own tests, in order."""
    venv = _venv(job)
    env = environment.clean(job.places.home, (venv / "bin",), extra=table.env)
    imports = [
        Trial(
            f"import {module}",
            Command((str(venv / "bin/python"), "-c", f"import {module}"), venv.parent, env),
        )
        for module in table.imports
    ]
    tests = [
        Trial(
            f"test {name}",
            Command((str(venv / "bin/python"), str(_copy(job, name))), venv.parent, env),
        )
        for name in table.tests
    ]
    return [Trial("install", _installation(job, table, wheel)), *imports, *tests]


def _copy_tests(job: Job, table: VerifyTable, tree: Path) -> None:
    """Put the tests where the tree does not lie around them: what they import is to come from the wheel."""
    for name in table.tests:
        test = (tree / name).resolve()
        if not test.is_file() or not test.is_relative_to(tree.resolve()):
            raise RecipeError(
                f"verify.tests: {name} is no file of the tree",
                remedy="Name tests as they lie in the pinned commit, and do not exclude them.",
            )
        files.write(_copy(job, name), test.read_text("utf-8"))


def _copy(job: Job, test: str) -> Path:
    """Return where a test is run from: alone in a directory, since Python looks there first."""
    path = Path(test)
    return _venv(job).parent / "tests" / "-".join(path.with_suffix("").parts) / path.name


def _programs(job: Job, table: VerifyTable) -> list[Trial]:
    """Return the smoke programs that the recipe names, to be run on the first module that it imports."""
    module = next(iter(table.imports), "tensorflow")
    return [
        Trial(name, trying.execution(name, module, _venv(job), job.places.home, table.env))
        for name in table.smoke
    ]


def _installation(job: Job, table: VerifyTable, wheel: str) -> Command:
    """Return the run of pip: with the pinned requirements, or with none and no network."""
    venv = _venv(job)
    pinned = (*table.requirements, *table.plugins)
    alone = ("--no-deps",) if not pinned else ()
    closed = packages.offline(job.places.vault) if pinned else ("--no-index",)
    # Quietly, since what is printed last is kept as what was seen.
    argv = (
        str(venv / "bin/python"),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        *alone,
        *closed,
        wheel,
        *pinned,
    )
    # It reads files of the vault only, so that it needs neither an index nor a proxy.
    return Command(argv, venv.parent, environment.clean(job.places.home, (venv / "bin",)))


def _creation(job: Job, interpreter: str, python: str) -> Command:
    """Return the making of the venv; Python 2 has no venv module of its own."""
    module = "virtualenv" if python.startswith("2.") else "venv"
    return Command(
        (interpreter, "-m", module, str(_venv(job))),
        job.places.own,
        environment.clean(job.places.home),
    )


def _pass(job: Job, wheel: Path, trial: Trial) -> Check:
    """Run a trial that has to exit 0; the last line that it prints is kept as what was seen."""
    log = job.log("verify-" + re.sub(r"\W+", "-", trial.name))
    try:
        printed = runner.run(
            trial.command, log, remedy="Look into the log for why it could not be started."
        )
    except ToolError as fault:
        seen = fault.evidence.lines[-1] if fault.evidence.lines else fault.what
        remedy = f"Look into the log; the venv is kept, its Python is {trial.command.argv[0]}."
        raise WheelError(
            f"{wheel.name} does not stand '{trial.name}': {seen}",
            remedy=remedy,
            evidence=fault.evidence,
        ) from fault
    return Check(
        name=trial.name,
        passed=True,
        detail=(printed.strip().splitlines() or ["exited with status 0"])[-1],
    )


def _smoke(job: Job, wheel: Path, program: Trial) -> Check:
    """Run a smoke program; what this machine has not got for it is no fault of the wheel."""
    outcome = trying.run(program.name, program.command, job.log(f"verify-smoke-{program.name}"))
    log = Path(outcome.log)
    if outcome.status == "failed":
        remedy = f"Look into the log; the venv is kept, its Python is {program.command.argv[0]}."
        evidence = Evidence(command=program.command.argv, log=log, lines=runner.last_lines(log))
        raise WheelError(
            f"{wheel.name} does not stand 'smoke {program.name}': {outcome.reason}",
            remedy=remedy,
            evidence=evidence,
        )
    return Check(
        name=f"smoke {program.name}", passed=outcome.status == "passed", detail=outcome.reason
    )


def _venv(job: Job) -> Path:
    return job.places.dist / "verify" / "venv"
