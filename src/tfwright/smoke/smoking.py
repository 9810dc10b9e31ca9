"""`invoke smoke`: a wheel in a fresh venv of its target Python, and small programs run there."""

import datetime as dt
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version
from pydantic import TypeAdapter

from tfwright.documents import filesystem
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.errors import HostError, RecipeError, SupplyError, WheelError
from tfwright.facts import compatibility
from tfwright.host import probes, pythons
from tfwright.smoke import run
from tfwright.smoke.run import TrialOutcome, WheelVenv
from tfwright.tools import files
from tfwright.tools.process import file_lock, runner
from tfwright.tools.python import package_clients, packages, pips
from tfwright.tools.python import venv as python
from tfwright.wheel import archive

LET_THROUGH = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
"""What of the caller's environment reaches the programs: where CUDA is, which GPUs are meant."""
NEED_NO_MODULE = ("imports", "library_path")
"""The other programs have nothing to say about a module that does not import."""
PACKAGE = re.compile(r"(\w+)/__init__\.py")


@dataclass(frozen=True)
class Request:
    """A wheel to be tried."""

    wheel: Path
    host_file: HostFile
    python: str = ""
    """Version or path of the target Python; without it the wheel's tags decide."""
    requirements: Sequence[str] = ()
    """Installed with the wheel, as pip takes them.

    Each goes before the known bounds on the same package.
    """
    module: str = "tensorflow"
    stores: Sequence[Path] = ()
    """Vaults whose packages are all that there is; without one, pip asks its index."""

    @classmethod
    def of(
        cls, recipe: Recipe, host_file: HostFile, wheel: Path, stores: Sequence[Path] = ()
    ) -> "Request":
        """Return the request to try a wheel as its recipe asks for it."""
        interpreter, table = recipe.host.python, recipe.verify
        python = "" if interpreter == "any" else interpreter
        return cls(wheel, host_file, python, table.requirements, table.module, stores)

    @property
    def sources(self) -> tuple[str, ...]:
        """Options that say where pip looks for packages."""
        return run.pip_sources(self.stores, self.requirements) if self.stores else ()

    @property
    def place(self) -> Path:
        """The directory of its venv, its logs and its report."""
        return self.host_file.build_out / "smoke" / self.wheel.stem

    @property
    def venv(self) -> WheelVenv:
        """The venv that it is installed in."""
        return WheelVenv(self.place / "venv")


@dataclass(frozen=True)
class SmokeReport:
    """What became of one wheel on one machine."""

    wheel: str
    sha256: str
    size: int
    """Bytes."""
    module: str
    python: str
    """Full version of the target Python."""
    machine: str
    at: str
    """UTC, ISO 8601."""
    requirements: tuple[str, ...]
    """What pip got in addition to the wheel's own metadata."""
    installed: tuple[str, ...]
    """Everything that was in the venv then, as exact pins."""
    outcomes: tuple[TrialOutcome, ...]

    @property
    def failures(self) -> list[TrialOutcome]:
        """What failed, in order."""
        return [outcome for outcome in self.outcomes if outcome.status == "failed"]

    @property
    def curves(self) -> dict[str, list[run.Point]]:
        """How fast matrices of each size were multiplied, by device."""
        return run.curves(self.outcomes)

    def dump(self) -> bytes:
        """Return the report as JSON."""
        return _REPORT.dump_json(self, indent=2) + b"\n"


_REPORT = TypeAdapter(SmokeReport)


def smoke(request: Request, on_outcome: Callable[[TrialOutcome], None]) -> SmokeReport:
    """Install a wheel and run every program on it; `on_outcome` gets each outcome at once.

    The report stays next to the logs; the venv stays only if something failed. Raises WheelError if
    the file is not a wheel or not for the target Python, HostError if that Python is missing,
    SupplyError if pip cannot install what the wheel needs.
    """
    interpreter, version = target_python(request)
    bounds = bounds_for(request)
    # pip would unpack a hostile archive too: look at its members before any venv is made.
    with archive.open_wheel(request.wheel):
        pass
    with file_lock.locked(request.place / "lock", f"smoke {request.wheel.name}"):
        seconds = _install(request, interpreter, version, bounds)
        installed = _installed_pins(request)
        count = "1 package" if len(installed) == 1 else f"{len(installed)} packages"
        outcomes = [TrialOutcome("install", "passed", count, seconds)]
        on_outcome(outcomes[0])
        for outcome in _run_programs(request):
            on_outcome(outcome)
            outcomes.append(outcome)
        report = SmokeReport(
            wheel=request.wheel.name,
            sha256=files.sha256(request.wheel),
            size=request.wheel.stat().st_size,
            module=request.module,
            python=version,
            machine=describe_machine(),
            at=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            requirements=(*request.requirements, *bounds),
            installed=installed,
            outcomes=tuple(outcomes),
        )
        files.write(request.place / "smoke.json", report.dump())
        # A venv with TensorFlow takes gigabytes; only a failure makes it worth keeping.
        if not report.failures:
            files.remove(request.venv.place)
    return report


def check_passed(request: Request, report: SmokeReport) -> None:
    """Raise WheelError with the first thing that failed."""
    # The first failure usually causes the others: without the import, nothing else works.
    for outcome in report.failures:
        raise request.venv.trial_error(report.wheel, outcome)


def target_python(request: Request) -> tuple[Path, str]:
    """Return the interpreter that a wheel is tried with, and its full version.

    Raises WheelError if the wheel is missing or its name does not say what it is for, HostError
    if no such Python is here.
    """
    versions = pythons_in_name(request.wheel)
    if request.python:
        versions = [request.python]
    for version in versions:
        # A path names one interpreter; a version is looked for on the PATH and in the host file.
        named = filesystem.expand_home(version).absolute() if os.sep in version else None
        path = named or pythons.find(version, request.host_file)
        found = pythons.version_of(path) if path else ""
        if path and found:
            return path, found
    remedy = (
        "Install one, or say where it is: --python PATH, or in the host file: [pythons] "
        f"{versions[0]!r} = '/path/to/python'."
    )
    if os.sep in versions[0]:
        remedy = "Correct --python: it takes the path of an interpreter, or a version such as 3.6."
    raise HostError(
        f"This host has no Python {' or '.join(versions)} for {request.wheel.name}", remedy=remedy
    )


def pythons_in_name(wheel: Path) -> list[str]:
    """Return the Pythons that a wheel's name asks for, the newest first; ``any`` if it takes any.

    Raises WheelError if the wheel is missing, or its name does not say what it is for.
    """
    archive.check_exists(wheel)
    # "cp39" asks for Python 3.9; "py3" and "abi3" tags accept more than one.
    exact = {
        re.sub(r"cp(\d)(\d+)", r"\1.\2", tag.interpreter)
        for tag in _version_and_tags(wheel)[1]
        if re.fullmatch(r"cp\d\d+", tag.interpreter)
    }
    return sorted(exact, key=Version, reverse=True) or ["any"]


def _version_and_tags(wheel: Path) -> tuple[Version, frozenset[Tag]]:
    """Return the version and the tags in a wheel's name."""
    try:
        _, version, _, tags = parse_wheel_filename(wheel.name)
    except InvalidWheelFilename as fault:
        raise WheelError(
            str(fault),
            remedy="Give the wheel its original name: pip reads from it what the wheel is for.",
            where=wheel,
        ) from fault
    return version, tags


def module_of(wheel: Path) -> str:
    """Return the only package that a wheel holds; `tensorflow` for one with several, or none.

    Raises WheelError if the file is missing or not a wheel.
    """
    archive.check_exists(wheel)
    with archive.open_wheel(wheel) as opened:
        own = {found[1] for name in opened.namelist() if (found := PACKAGE.fullmatch(name))}
    return own.pop() if len(own) == 1 else "tensorflow"


def bounds_for(request: Request) -> tuple[str, ...]:
    """Return the known bounds of a TensorFlow's release.

    Bounds on packages that the user has requirements for are left out.

    Raises RecipeError for a requirement that pip could not read.
    """
    try:
        named = {packages.name_of(line) for line in request.requirements}
    except InvalidRequirement as fault:
        raise RecipeError(
            f"--requirement: {' '.join(str(fault).split())}",
            remedy='Write it as pip takes it: "numpy<1.17".',
        ) from fault
    # The bounds are known for TensorFlow; another module brings its own metadata.
    if request.module != "tensorflow":
        return ()
    known = compatibility.package_bounds(str(_version_and_tags(request.wheel)[0]))
    # The user's own requirement wins: two lines for one package would contradict.
    return tuple(line for line in known if packages.name_of(line) not in named)


def _install(request: Request, interpreter: Path, version: str, bounds: Sequence[str]) -> float:
    """Make the venv and let its pip install the wheel, within the bounds; return the seconds."""
    start = time.monotonic()
    place = request.venv.place
    logs = request.place / "logs"
    # What an earlier trial installed could hide what this wheel fails to require.
    files.remove(place)
    python.create(interpreter, version, place, logs / "venv.log")
    log = logs / "pip.log"
    # Another pip first, if the venv's own is too old; in the vault it is the one of the recipe.
    if request.stores:
        first = pips.split_pip(request.requirements)[0]
    else:
        first = [pip] if (pip := pips.replacement_pin(place, version, log)) else []
    if first:
        _pip_install(request, log, *first)
    # Constraints bound a package only if something requires it; they install nothing.
    constraints = place / "bounds.txt"
    files.write(constraints, "".join(f"{line}\n" for line in bounds))
    wheel = str(request.wheel.absolute())
    # The wheel first: then 'tensorflow-gpu[and-cuda]' is an extra of it, and not of the index's.
    what = (wheel, *request.requirements, "--constraint", str(constraints))
    _pip_install(request, logs / "install.log", *what)
    return time.monotonic() - start


def _pip_install(request: Request, log: Path, *what: str) -> None:
    """Let the pip of the venv install something.

    Among sources and wheels it prefers wheels: for an old Python, the newest grpcio would have to
    be compiled for many minutes.
    """
    options = ("install", "--prefer-binary", *request.sources)
    command = package_clients.pip_command(request.venv.python, *options, *what, cwd=request.place)
    remedy = "Give other bounds with --requirement, or check how pip reaches its package index."
    try:
        packages.run_pip(command, log, f"could not install {Path(what[0]).name}", remedy)
    except SupplyError as fault:
        _, unsupported, why = fault.what.partition("ERROR: ")
        # pip says so before any download: the wheel is wrong here, and not the index.
        if not (unsupported and "is not a supported wheel" in why):
            raise
        raise WheelError(
            why,
            remedy="Give another Python with --python, or the wheel for this machine.",
            evidence=fault.evidence,
        ) from fault


def _installed_pins(request: Request) -> tuple[str, ...]:
    """List what is in a venv, but for the wheel itself, which pip names by its path."""
    command = request.venv.pip_offline(request.place, "freeze")
    printed = runner.run(
        command,
        request.place / "logs/freeze.log",
        remedy="Run the command again: it makes the venv again.",
    )
    # Lines of any other form, such as name @ file:///..., are not pins.
    return tuple(re.findall(r"^[\w.-]+==[\w.!+-]+$", printed, re.MULTILINE))


def _run_programs(request: Request) -> Iterator[TrialOutcome]:
    """Run the programs; those that need the module are skipped once it did not import."""
    variables = {name: value for name, value in os.environ.items() if name in LET_THROUGH}
    # A home of its own: programs compile GPU kernels into ~/.nv and read ~/.keras.
    user = request.place / "home"
    user.mkdir(parents=True, exist_ok=True)
    imports = True
    # Every program runs on its own, so a crash ends only its own process.
    for name in run.ORDER:
        if imports or name in NEED_NO_MODULE:
            program = str(run.program_path(name))
            command = request.venv.python_command(
                program, request.module, home=user, extra=variables
            )
            outcome = run.run(name, command, request.place / f"logs/{name}.log")
        else:
            outcome = TrialOutcome(name, "skipped", f"{request.module} does not import")
        imports = imports and not (name == "imports" and outcome.status == "failed")
        yield outcome


def describe_machine() -> str:
    """Describe this machine in a line: what may make a program fast, slow or fail."""
    host = probes.this_host()
    parts = [
        str(host.release),
        host.machine,
        f"{os.cpu_count()} cores",
        str(host.processor),
        ", ".join(map(str, host.gpus)) or "no NVIDIA GPU",
    ]
    return ", ".join(part for part in parts if part)
