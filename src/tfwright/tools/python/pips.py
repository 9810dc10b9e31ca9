"""The pip that a venv gets first, where the one that its Python brings is too old for the rest."""

import re
from collections.abc import Sequence
from pathlib import Path

from tfwright.tools.process import runner
from tfwright.tools.process.command import Command
from tfwright.tools.python import package_clients

# These versions are from pip's release notes.
ENOUGH = (20, 3)
"""The first pip that reads present-day wheels (manylinux2014, manylinux_2_17), passes over
withdrawn files, and takes an older version of a package where the newest is for other Pythons."""
LAST = {"2.7": "20.3.4", "3.4": "19.1.1", "3.5": "20.3.4"}
"""The last pip of each Python that `NEWER` does not run on."""
NEWER = "21.3.1"
"""The last pip for Python 3.6. Later Pythons get it too: from 23.1 on, pip downloads setuptools to
build an old source package, which an offline build cannot."""
_SAID = re.compile(r"^pip (\d+)\.(\d+)", re.MULTILINE)


def instead(home: Path, version: str, log: Path) -> str:
    """Return the pin of the pip that a venv needs instead of its own; empty if that will do.

    `version` is the full one of its Python.
    """
    argv = (*package_clients.pip(home / "bin/python"), "--version")
    command = Command(argv, home, package_clients.of("pip", (home / "bin",)))
    remedy = "Repair the target Python: the pip of its venv does not run."
    own = _SAID.search(runner.run(command, log, remedy=remedy))
    if own and (int(own[1]), int(own[2])) >= ENOUGH:
        return ""
    return f"pip=={LAST.get(version.rpartition('.')[0], NEWER)}"


def apart(pins: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the pin of pip, which is installed first and installs the others, and the others."""
    pips = [pin for pin in pins if pin.startswith("pip==")]
    return pips, [pin for pin in pins if pin not in pips]
