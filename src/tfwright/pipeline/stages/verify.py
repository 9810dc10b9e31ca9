"""Reads the wheel, installs it in a fresh venv of the target Python, and runs it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tfwright.documents.recipe import HostTable, VerifyTable
from tfwright.errors import RecipeError, WheelError
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Check, HostFacts, SealedWheel, Tree, Verdict
from tfwright.pipeline.stage import Artefact, Step
from tfwright.tools import files
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command

if TYPE_CHECKING:
    from tfwright.smoke.run import WheelVenv
    from tfwright.wheel.inspect.floors import Reading


REVISION = 2


class Trial(NamedTuple):
    """Something that is done with the wheel."""

    name: str
    command: Command
    seconds: float | None = None
    """How long it may take; None where it has no limit."""
    by_status: bool = True
    """Whether its exit status alone says how it went; a smoke program prints that."""


def run(
    job: Job,
    table: VerifyTable,
    wanted: HostTable,
    host: HostFacts,
    tree: Tree,
    sealed: SealedWheel,
) -> Verdict:
    """Try the wheel as its users will; raise WheelError at the first thing in which it fails."""
    from tfwright.tools.python import venv as python_venv

    wheel, venv = sealed.wheel.path, _venv(job)
    # Made before anything runs: an unknown smoke program is refused at once.
    trials = _trials(job, table, str(wheel))
    # Reading takes seconds, so it goes before the venv and the programs.
    checks = list(_read_wheel(job, sealed.wheel, table, wanted, host))
    files.remove(venv.place)
    venv.place.parent.mkdir(parents=True, exist_ok=True)
    _copy_tests(job, table, tree.path)
    home = job.places.home
    runner.run(
        python_venv.create_command(str(host.interpreter), host.python, venv.place, home),
        job.log("verify-venv"),
        remedy=python_venv.install_remedy(host.interpreter, host.python),
    )
    checks += [_run_trial(job, wheel, trial) for trial in trials]
    # Kept where something failed, for whoever looks into it.
    files.remove(venv.place)
    return Verdict(wheel=sealed.wheel, checks=tuple(checks))


def inputs(table: VerifyTable) -> Mapping[str, str]:
    """Return the digests of the smoke programs: of all, since they share code."""
    from tfwright.smoke import PROGRAMS

    if not table.smoke:
        return {}
    # A changed program may see what the old one missed, so the wheel is tried again.
    programs = sorted(PROGRAMS.glob("*.py"))
    return {f"smoke/{path.name}": files.sha256(path) for path in programs}


def steps(job: Job, table: VerifyTable, host: HostFacts | None) -> Sequence[Step]:
    """Return the programs that are run; what only a build knows stands as ``@NAME@``."""
    from tfwright.tools.python import venv

    trials = _trials(job, table, "@WHEEL@")
    # Python 2 needs virtualenv, so the version decides the command.
    version = host.python if host else ""
    creation = venv.create_command("@PYTHON@", version, _venv(job).place, job.places.home)
    return creation, *(trial.command for trial in trials)


def _read_wheel(
    job: Job, wheel: Artefact, table: VerifyTable, wanted: HostTable, host: HostFacts
) -> Iterator[Check]:
    """Insist on what can be seen without running anything; say which directories are named."""
    from tfwright.pipeline import leak_directories
    from tfwright.wheel import archive
    from tfwright.wheel.inspect import floors, inspection
    from tfwright.wheel.inspect.floors import Reading
    from tfwright.wheel.inspect.leaks import LeakSearch

    search = LeakSearch(leak_directories.build_directories(job, wanted, host))
    with archive.open_wheel(wheel.path) as content:
        # Once for all readings: unpacking takes most of the time.
        found = inspection.read_contents(content, search)
        for reading in floors.readings(wheel.path, content, found, table, host.python):
            yield _passed_check(wheel.path, reading)
    # No fault: the wheel works, but only this host can build it again.
    for note in search.notes(found.leaks):
        job.listener.note(note)
    named = len({leak.file for leak in found.leaks})
    yield Check(
        name="directories of the host",
        passed=True,
        detail=f"named in {named:,} of the wheel's files" if named else "not named",
    )
    if table.size is not None:
        faults = []
        # Indexes limit the size of a file; the recipe states the limit that matters to it.
        if wheel.size > table.size:
            faults = [f"{wheel.size:,} bytes, {table.size:,} are allowed"]
        yield _passed_check(wheel.path, Reading("size", faults, f"{wheel.size:,} bytes"))


def _passed_check(wheel: Path, reading: "Reading") -> Check:
    """Return a check that found nothing; raise WheelError with what it found."""
    name, faults, detail = reading
    if faults:
        raise WheelError(
            f"{wheel.name}: {name}: {faults[0]}",
            remedy=_REMEDIES.get(name, _OTHER_REMEDY),
            where=wheel,
            lines=faults,
        )
    return Check(name=name, passed=True, detail=detail)


_REMEDIES = {
    "tags": "Build with the Python that [host] names, or correct by a patch what names the wheel.",
    "glibc": "Raise verify.glibc, or build on an older system: host.image can name one.",
    "cpu": "Raise verify.cpu, or compile for less: CC_OPT_FLAGS in [configure.answers], "
    "compile.flags.",
    "macos": "Raise verify.macos, or compile for an older one: --macos_minimum_os=VERSION in "
    "compile.flags.",
    "architectures": "Let verify.architectures name what is built: TF_CUDA_COMPUTE_CAPABILITIES "
    "in [configure.answers] decides that.",
    "size": "Raise verify.size, or build less: fewer GPU architectures, fewer features.",
}
"""What to do about a reading, by its name."""
_OTHER_REMEDY = "Correct by a patch what puts the wheel together: pip cannot use it as it is."


def _trials(job: Job, table: VerifyTable, wheel: str) -> list[Trial]:
    """Return the installation, the imports and the tests, in order."""
    from tfwright.smoke import run as trying
    from tfwright.tools.python import pips

    venv, home = _venv(job), job.places.home
    # pip installs with the pinned requirements, or with none and no network. The pip of an old
    # Python cannot read every wheel of its time, so a pinned one goes first.
    pip, others = pips.split_pip((*table.requirements, *table.plugins))
    stores, trials = job.places.stores, list[Trial]()
    if pip:
        trials.append(
            Trial("install pip", _pip_install(job, *trying.pip_sources(stores, pip), *pip))
        )
    where = trying.pip_sources(stores, others)
    trials.append(Trial("install", _pip_install(job, *where, wheel, *others)))
    # Imports before tests: without its module every test fails in the same way.
    for module in table.imports:
        command = venv.python_command("-c", f"import {module}", home=home, extra=table.env)
        trials.append(Trial(f"import {module}", command, trying.SECONDS))
    for name in table.tests:
        command = venv.python_command(str(_test_copy(job, name)), home=home, extra=table.env)
        trials.append(Trial(f"test {name}", command))
    for name in table.smoke:
        program = str(trying.program_path(name))
        command = venv.python_command(program, table.module, home=home, extra=table.env)
        trials.append(Trial(f"smoke {name}", command, trying.SECONDS, by_status=False))
    return trials


def _copy_tests(job: Job, table: VerifyTable, tree: Path) -> None:
    """Put the tests where the tree does not lie around them: they must import the wheel."""
    for name in table.tests:
        test = (tree / name).resolve()
        # A link in the tree could lead to any file of the host.
        if not test.is_file() or not test.is_relative_to(tree.resolve()):
            raise RecipeError(
                f"verify.tests: {name} is not a file of the tree",
                remedy="Name tests as they lie in the pinned commit, and do not exclude them.",
            )
        # As bytes: a test may be written in any encoding that Python knows.
        files.write(_test_copy(job, name), test.read_bytes())


def _test_copy(job: Job, test: str) -> Path:
    """Return where a test is run from: alone in a directory, since Python looks there first."""
    path = Path(test)
    folder = "-".join(path.with_suffix("").parts)
    return _venv(job).place.parent / "tests" / folder / path.name


def _pip_install(job: Job, *arguments: str) -> Command:
    """Return an installation by the pip of the venv."""
    # Quietly, since what is printed last is kept as what was seen.
    return _venv(job).pip_offline(job.places.home, "install", "--quiet", *arguments)


def _run_trial(job: Job, wheel: Path, trial: Trial) -> Check:
    """Run a trial; what this machine lacks for a smoke program is no fault of the wheel."""
    from tfwright.smoke import run as trying

    # The name holds whatever a module or a test is called, and becomes a file name.
    log = job.log("verify-" + re.sub(r"\W+", "-", trial.name))
    outcome = trying.run(trial.name, trial.command, log, trial.seconds, by_status=trial.by_status)
    if outcome.status == "failed":
        raise _venv(job).trial_error(wheel.name, outcome, trial.command.argv)
    return Check(name=trial.name, passed=outcome.status == "passed", detail=outcome.reason)


def _venv(job: Job) -> "WheelVenv":
    from tfwright.smoke.run import WheelVenv

    return WheelVenv(job.places.dist / "verify" / "venv")
