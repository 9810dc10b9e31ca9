"""All packages that some packages need, at the versions that pip of the target Python chooses."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tfwright.errors import SupplyError, ToolError
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command
from tfwright.tools.python import package_clients, packages, venv

BROUGHT_ALONG = {"pip", "setuptools", "wheel", "pkg-resources"}
"""What a fresh venv has; it is pinned only where the recipe names it."""


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
    # A file and not arguments: a requirement that begins with a dash would be an
    # option.
    listed = home.with_name("requirements.txt")
    listed.write_text("".join(f"{line}\n" for line in requirements), "utf-8")
    command = _pip(home, "install", "-r", str(listed))
    try:
        runner.run(command, log, remedy="Correct the requirement that pip names.")
    except ToolError as fault:
        raise SupplyError(
            f"pip found no versions for {', '.join(requirements)}: {packages.complaint(log)}",
            remedy="Correct the requirement that pip names, or pin an older version of it.",
            evidence=fault.evidence,
        ) from fault


def _installed(home: Path, log: Path) -> list[dict[str, str]]:
    """Return name and version of each package in a venv."""
    command = _pip(home, "list", "--format=json")
    printed = runner.run(command, log, remedy="See the log.")
    # pip's warnings stand in the log as well, behind the list.
    packages_found: list[dict[str, str]] = json.loads(printed.splitlines()[0])
    return packages_found
