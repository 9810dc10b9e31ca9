"""The checks of this project itself: what `invoke lint`, `types` and `test` run."""

import importlib.util
import math
import os
import sys

from tfwright.documents.recipe import ROOT
from tfwright.errors import Evidence, HostError, RecipeError, ToolError
from tfwright.tools.process import capacity
from tfwright.tools.process.command import Command
from tfwright.tools.process.runner import show

REMEDY = "Run 'python3 tasks.py test' once: it installs the developers' tools into .venv."


def run(tool: str, *arguments: str) -> None:
    """Run one of the developers' tools over the checkout, its output on the terminal.

    Raises HostError if the tool is not installed, ToolError if it finds fault.
    """
    # The venv's own, whose version requirements-dev.txt pins; PATH may have another.
    program = f"{sys.prefix}/bin/{tool}"
    if not os.access(program, os.X_OK):
        raise HostError(f"{tool} is not installed here", remedy=REMEDY)
    command = Command((program, *arguments), ROOT, os.environ)
    status = show(command)
    if status:
        raise ToolError(
            f"{tool} found fault",
            remedy="Its findings are above.",
            evidence=Evidence(command=command.argv, status=status),
        )


def check_code() -> None:
    """Check the style and the imports of the whole project."""
    run("ruff", "check")
    run("ruff", "format", "--check")
    run("lint-imports")


ATTACKS = "tests/attack"
"""Where the attacks are, which only `attack` runs."""
PARTS = ("readers", "strangers", "kills", "disks", "damage")
"""The parts of the campaign: each is a file of that folder."""


def attack(seconds: float, seed: int, part: str = "") -> None:
    """Run the attacks, for so many seconds together; the same seed tries the same cases.

    Raises ToolError if a case ended wrong, RecipeError for a part or a time that there is not.
    """
    if part and part not in PARTS:
        raise RecipeError(
            f"The attacks have no part {part!r}",
            remedy=f"Use one of: {', '.join(PARTS)}.",
        )
    if not 0 < seconds < math.inf:
        raise RecipeError(
            f"{seconds:g} is not a time in seconds",
            remedy="Give --seconds 3600 for an hour.",
        )
    _insist_on_pytest()
    # By the environment: pytest has no options of ours.
    os.environ["TFWRIGHT_ATTACK_SECONDS"] = str(seconds)
    os.environ["TFWRIGHT_ATTACK_SEED"] = str(seed)
    place = f"{ATTACKS}/test_{part}.py" if part else ATTACKS
    run("pytest", place, "-m", "attack")


def _insist_on_pytest() -> None:
    if importlib.util.find_spec("pytest") is None:
        raise HostError("pytest is not installed here", remedy=REMEDY)


def test(*, everything: bool, coverage: bool) -> None:
    """Run the tests, all of them or the fast ones."""
    _insist_on_pytest()
    # The attacks go on for an hour by themselves.
    marks = ("-m", "not attack") if everything else ()
    if coverage:
        # Each program that the tests start leaves a file of its own, also those of earlier runs.
        run("coverage", "erase")
        run("coverage", "run", "-m", "pytest", *marks)
        run("coverage", "combine", "--quiet")
        run("coverage", "report", "--skip-covered", "--show-missing")
    else:
        # Fast tests wait for others now and then; the slow ones start programs that want all cores
        # for themselves.
        run("pytest", *(marks or (f"--numprocesses={capacity.cores() + 1}",)))
