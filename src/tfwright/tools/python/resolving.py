"""All packages that some packages need, at the versions that pip of the target Python chooses."""

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tfwright.errors import SupplyError, ToolError
from tfwright.tools import json_text
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command
from tfwright.tools.python import package_clients, packages, venv

BROUGHT_ALONG = {"pip", "setuptools", "wheel", "pkg-resources"}
"""What a fresh venv has; it is pinned only where the recipe names it."""
MOST_UNFIT = 60
"""How often an old pip is asked again without what it refused."""
_OF_ANOTHER_PYTHON = re.compile(
    r"^(?:ERROR: )?(?:(?P<name>\S+) requires Python '.*' but the running Python is"
    r"|Package '(?P<later>[^']+)' requires a different Python)",
    re.MULTILINE,
)
_SKIPPED = re.compile(
    r"^.*(?:incompatible with the pythonversion|requires a different Python).*$",
    re.MULTILINE,
)
_CHOSEN = re.compile(r"^\s*Using version (\S+) \(newest of", re.MULTILINE)


def closure(
    interpreter: Path, version: str, requirements: Sequence[str], log: Path
) -> tuple[str, ...]:
    """Return exact pins for requirements and everything that they need, sorted.

    pip installs them into a venv that is thrown away: the pip of an old Python knows no dry run,
    and a source package says only while it is built what it needs. Raises SupplyError if pip finds
    no versions that fit together.
    """
    with tempfile.TemporaryDirectory(prefix="tfwright-pin-") as folder:
        home = Path(folder) / "venv"
        venv.create(interpreter, version, home, log)
        _install(home, requirements, log)
        installed = _installed(home, log)
    named = {packages.name_of(line) for line in requirements}
    pins = []
    for package in installed:
        name = packages.name_of(package["name"])
        if name in named or name not in BROUGHT_ALONG:
            pins.append(f"{name}=={package['version']}")
    return tuple(sorted(pins))


def _pip(home: Path, *arguments: str) -> Command:
    argv = (*package_clients.pip(home / "bin/python"), *arguments)
    return Command(argv, home, package_clients.of("pip", (home / "bin",)))


def _install(home: Path, requirements: Sequence[str], log: Path) -> None:
    # Files and not arguments: a requirement that begins with a dash would be an option.
    listed = home.with_name("requirements.txt")
    listed.write_text("".join(f"{line}\n" for line in requirements), "utf-8")
    constraints = home.with_name("constraints.txt")
    constraints.touch()
    files = ("-r", str(listed), "-c", str(constraints))
    command = _pip(home, "install", *files)
    try:
        try:
            runner.run(command, log, remedy=_REMEDY)
        except ToolError:
            if not _OF_ANOTHER_PYTHON.search(log.read_text("utf-8", "replace")):
                raise
            _lead(home, files, log)
            # Nothing is left to do, unless pip failed otherwise: then it says so once more.
            runner.run(command, log, remedy=_REMEDY)
    except ToolError as fault:
        raise _unresolved(requirements, log, fault) from fault


def _lead(home: Path, files: Sequence[str], log: Path) -> None:
    """Let an old pip install once more, without the versions that are for other Pythons.

    An index that does not say which Pythons a file is for, such as a directory of wheels, makes
    pips before 20.3 choose the newest one, and fail at it. Returns as soon as it fails otherwise.
    """
    constraints, unfit = Path(files[-1]), dict[str, list[str]]()
    spoken = log.with_name(f"{log.stem}-versions.log")
    # Only its verbose output names the version that it chose.
    command = _pip(home, "install", "-v", *files)
    for _ in range(MOST_UNFIT):
        constraints.write_text("".join(_constraints(unfit)), "utf-8")
        try:
            runner.run(command, spoken, remedy=_REMEDY)
        except ToolError:
            refused = _refused(spoken.read_text("utf-8", "replace"))
            if refused is None:
                return
            name, versions = refused
            unfit.setdefault(name, []).extend(versions)
        else:
            return
    raise SupplyError(
        f"Too many versions of {', '.join(unfit)} are for other Pythons",
        remedy="Name older versions of these packages.",
    )


def _constraints(unfit: Mapping[str, Sequence[str]]) -> Iterator[str]:
    # One line for each package: an old pip reads only one of several.
    for name, refused in unfit.items():
        yield f"{name}{','.join(f'!={version}' for version in refused)}\n"


_REMEDY = "Correct the requirement that pip names."


def _unresolved(
    requirements: Sequence[str], log: Path, fault: ToolError
) -> SupplyError:
    return SupplyError(
        f"pip found no versions for {', '.join(requirements)}: {packages.complaint(log)}",
        remedy="Correct the requirement that pip names, or pin an older version of it.",
        evidence=fault.evidence,
    )


def _refused(said: str) -> tuple[str, list[str]] | None:
    """Return the package that pip has just refused, with its versions for other Pythons.

    They are the one that it chose, and those that it skipped where another index says it. Returns
    None if pip failed otherwise.
    """
    refused, chosen = _OF_ANOTHER_PYTHON.search(said), _CHOSEN.findall(said)
    if not (refused and chosen):
        return None
    name = refused["name"] or refused["later"]
    return name, [chosen[-1], *_skipped(said, name)]


def _skipped(said: str, name: str) -> list[str]:
    """Return the versions of a package of which an index says that they are for other Pythons."""
    versions = dict[str, None]()
    for row in _SKIPPED.findall(said):
        for file in re.findall(r"/([^/\s#]+)(?:#\S*)? \(from ", row):
            try:
                project, version = packages.release(file)
            except SupplyError:
                continue
            if project == packages.name_of(name):
                versions[version] = None
    return list(versions)


def _installed(home: Path, log: Path) -> list[dict[str, str]]:
    """Return name and version of each package in a venv."""
    command = _pip(home, "list", "--format=json")
    printed = runner.run(command, log, remedy="See the log.")
    # pip's warnings stand in the log as well, behind the list.
    packages_found: list[dict[str, str]] = json_text.parsed(
        printed.splitlines()[0]
    )
    return packages_found
