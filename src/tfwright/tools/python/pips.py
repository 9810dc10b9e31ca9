"""The pip that a venv gets first, where the one that its Python brings is too old for the rest."""

import re
from collections.abc import Sequence
from pathlib import Path

from tfwright.documents.names import EXACT_PIN
from tfwright.errors import RecipeError
from tfwright.tools.process import runner
from tfwright.tools.python import package_clients

# These versions are from pip's release notes.
ENOUGH = (20, 3)
"""The first pip that reads present-day wheels (manylinux2014, manylinux_2_17), passes over
withdrawn files, and takes an older version of a package where the newest is for other Pythons."""
BRINGS_ENOUGH = (3, 9)
"""The first Python that brings such a pip. 3.7 and 3.8 do at their last patch levels only, and a
recipe names none."""
LAST = {"2.7": "20.3.4", "3.4": "19.1.1", "3.5": "20.3.4"}
"""The last pip of each Python that `NEWER` does not run on."""
NEWER = "21.3.1"
"""The last pip for Python 3.6. Later Pythons get it too: from 23.1 on, pip downloads setuptools to
build an old source package, which an offline build cannot."""
DRY = "pip>=23.3,<27"
"""Reads in a dry run what a wheel needs from the index's own metadata file, where there is one:
NVIDIA's wheels have 3 GB."""
_SAID = re.compile(r"^pip (\d+)\.(\d+)", re.MULTILINE)
_TWO = re.compile(r"(\d{1,9})(?:\.(\d{1,9}))?")


def replacement_pin(home: Path, version: str, log: Path) -> str:
    """Return the pin of the pip that a venv needs instead of its own; empty if that will do.

    `version` is the full one of its Python.
    """
    command = package_clients.pip_command(home / "bin/python", "--version", cwd=home)
    remedy = "Repair the target Python: the pip of its venv does not run."
    own = _SAID.search(runner.run(command, log, remedy=remedy))
    if own and (int(own[1]), int(own[2])) >= ENOUGH:
        return ""
    return f"pip=={_newest_pip(version)}"


def check_reads_platform(platform: str | None, version: str, pins: Sequence[str]) -> None:
    """Raise RecipeError if a venv's pip may not read a wheel's ``manylinux_2_31_x86_64``.

    `version` is that of its Python; nothing is known of ``any``. `pins` are what the venv gets.
    """
    python, (pip, _) = _major_minor(version), split_pip(pins)
    if not platform or not python:
        return
    who = f"the pip that Python {'.'.join(map(str, python))} brings may not read"
    last = _newest_pip(version)
    remedy = f'Add "pip=={last}" to verify.requirements.'
    enough = python >= BRINGS_ENOUGH
    if pip and (pinned := EXACT_PIN.fullmatch(pip[0])):
        who = f"pip {pinned['version']} does not read"
        remedy = f'Pin "pip=={last}" in verify.requirements instead.'
        enough = _major_minor(pinned["version"]) >= ENOUGH
    if _major_minor(last) < ENOUGH:
        remedy = "Take package.platform out of the recipe: no pip of this Python reads it."
    if not enough:
        raise RecipeError(f"{who} {platform}, which pip reads from 20.3 on", remedy=remedy)


def _newest_pip(version: str) -> str:
    """Return the newest pip that a venv of a Python can have and that needs no network."""
    return LAST.get(".".join(map(str, _major_minor(version))), NEWER)


def _major_minor(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version; none of ``any``."""
    found = _TWO.match(version)
    return (int(found[1]), int(found[2] or 0)) if found else ()


def split_pip(pins: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the pin of pip, which is installed first and installs the others, and the others."""
    pips = [pin for pin in pins if pin.startswith("pip==")]
    return pips, [pin for pin in pins if pin not in pips]
