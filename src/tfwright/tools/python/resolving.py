"""All packages that some packages need, at the versions that pip of the target Python chooses."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tfwright.errors import SupplyError
from tfwright.tools import files, json_text
from tfwright.tools.process import runner
from tfwright.tools.python import package_clients, packages, pips, venv

_REMEDY = "Correct the requirement that pip names, or pin an older version of it."
_PIP_REMEDY = (
    "Give the package index this pip, or name one that it has: --add pip==VERSION, and --verify "
    "pip==VERSION for the wheel."
)
_UNLISTED = "Correct or leave out the requirement whose package pip cannot list; the log names it."


def resolve(
    interpreter: Path,
    version: str,
    requirements: Sequence[str],
    log: Path,
    preferred: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return exact pins for requirements and everything that they need, sorted.

    Only the target Python knows which of them its version and system need. Where its pip is too old
    to choose well, the pip that chooses is one of the pins, since the older one could not install
    what it chose; it knows no dry run, and installs all into a venv that is thrown away. Of
    `preferred` pins, those that are needed keep their version. Raises SupplyError if pip finds no
    versions that fit together.
    """
    wanted = list(requirements)
    with files.scratch_directory() as folder:
        home = folder / "venv"
        venv.create(interpreter, version, home, log)
        pip = [line for line in wanted if packages.name_of(line) == "pip"]
        if not pip and (pin := pips.replacement_pin(home, version, log)):
            pip = [pin]
            wanted.append(pin)
        report = home.with_name("report.json")
        dry = []
        if pip:
            # Without options: a very old pip knows none of those below.
            _install(home, pip, (), log, _PIP_REMEDY)
        elif not version.startswith("2."):
            # Without it in the index, the venv's own pip installs all.
            with suppress(SupplyError):
                _install(home, [pips.DRY], (), log, "")
                dry = ["--dry-run", f"--report={report}"]
        # What a fresh venv has is pinned only where the recipe names it, or a package changes it.
        fresh = _installed_packages(home, log)
        # A newer release without a wheel would be compiled in every venv: grpcio for many minutes.
        # Nothing is run here, so no module has to be compiled to bytecode.
        options = ["--prefer-binary", "--no-compile", *dry]
        if version.startswith("2."):
            # For Python 2, pip takes an older version of a package only if it is asked to.
            options.append("--use-feature=2020-resolver")
        if preferred:
            constraints = home.with_name("constraints.txt")
            constraints.write_text("\n".join(preferred), "utf-8")
            options.append(f"--constraint={constraints}")
        _install(home, wanted, options, log, _REMEDY)
        chosen = fresh | _reported_packages(report) if dry else _installed_packages(home, log)
    # The extras of a package decide what it needs, so that the pin keeps them.
    named = {packages.name_of(line): re.sub(r"[^\[]*(\[.*?\])?.*", r"\1", line) for line in wanted}
    pins = chosen.items() - {item for item in fresh.items() if item[0] not in named}
    return tuple(sorted(f"{name}{named.get(name, '')}=={version}" for name, version in pins))


def _installed_packages(home: Path, log: Path) -> dict[str, str]:
    """Return the packages of a venv with their versions."""
    listing = package_clients.pip_command(home / "bin/python", "list", "--format=json", cwd=home)
    # pip's warnings are in the log as well, behind the list; that of Python 2's end is before it.
    lines = runner.run(listing, log, remedy=_UNLISTED).splitlines()
    found = next((line for line in lines if line.startswith(("[{", "[]"))), "[]")
    installed: list[dict[str, str]] = json_text.parse(found)
    return {packages.name_of(package["name"]): package["version"] for package in installed}


def _reported_packages(report: Path) -> dict[str, str]:
    """Return the packages that a dry run would install, with their versions."""
    chosen = (entry["metadata"] for entry in json_text.parse(files.text(report))["install"])
    return {packages.name_of(package["name"]): package["version"] for package in chosen}


def _install(
    home: Path, requirements: Sequence[str], options: Sequence[str], log: Path, remedy: str
) -> None:
    """Let the pip of a venv choose versions, and install them."""
    listed = packages.write_requirements(home.with_name("requirements.txt"), requirements)
    command = package_clients.pip_command(
        home / "bin/python", "install", *options, *listed, cwd=home
    )
    packages.run_pip(command, log, "found no versions that fit", remedy)
