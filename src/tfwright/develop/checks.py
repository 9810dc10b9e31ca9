"""The checks of this project itself: what `invoke lint`, `types` and `test` run."""

import importlib.util
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tfwright.documents import toml
from tfwright.documents.filesystem import ROOT
from tfwright.errors import Evidence, HostError, RecipeError, ToolError
from tfwright.tools import json_text
from tfwright.tools.process import capacity
from tfwright.tools.process.command import Command
from tfwright.tools.process.runner import run_on_terminal

REMEDY = "Run 'python3 tasks.py test' once: it installs the developers' tools into .venv."


def run_tool(tool: str, *arguments: str) -> None:
    """Run one of the developers' tools over the checkout, its output on the terminal.

    Raises HostError if the tool is not installed, ToolError if it ends badly.
    """
    # The venv's own, whose version requirements-dev.txt pins; PATH may have another.
    program = f"{sys.prefix}/bin/{tool}"
    if not os.access(program, os.X_OK):
        raise HostError(f"{tool} is not installed here", remedy=REMEDY)
    command = Command((program, *arguments), ROOT, os.environ)
    status = run_on_terminal(command)
    if status:
        raise ToolError(
            f"{tool} ended with status {status}",
            remedy="Mend what it reports above, and run the command again.",
            evidence=Evidence(command=command.argv, status=status),
        )


def check_code() -> None:
    """Check the style and the imports of the whole project."""
    run_tool("ruff", "check")
    run_tool("ruff", "format", "--check")
    run_tool("lint-imports", "--no-logo")


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
            f"The attacks have no part {part!r}", remedy=f"Use one of: {', '.join(PARTS)}."
        )
    if not 0 < seconds < math.inf:
        raise RecipeError(
            f"{seconds:g} is not a time in seconds", remedy="Give --seconds 3600 for an hour."
        )
    _check_pytest()
    # By the environment: pytest has no options of ours.
    os.environ["TFWRIGHT_ATTACK_SECONDS"] = str(seconds)
    os.environ["TFWRIGHT_ATTACK_SEED"] = str(seed)
    place = f"{ATTACKS}/test_{part}.py" if part else ATTACKS
    run_tool("pytest", place, "-m", "attack")


def _check_pytest() -> None:
    if importlib.util.find_spec("pytest") is None:
        raise HostError("pytest is not installed here", remedy=REMEDY)


COVERED = "not slow and not real and not attack"
"""The tests whose coverage counts: every host can run them."""
LEAST = 90.0
"""Per cent of a module's lines and branches that they reach, unless pyproject.toml has a reason."""


def test(*, everything: bool, coverage: bool) -> None:
    """Run the tests, all of them or the fast ones; for coverage the medium ones as well."""
    _check_pytest()
    # The attacks go on for an hour by themselves.
    marks = ("-m", "not attack") if everything else ()
    if coverage:
        # Each program that the tests start leaves a file of its own, also those of earlier runs.
        run_tool("coverage", "erase")
        run_tool("coverage", "run", "-m", "pytest", *(marks or ("-m", COVERED)))
        run_tool("coverage", "combine", "--quiet")
        run_tool("coverage", "report", "--skip-covered", "--show-missing")
        # Slow and real tests reach more, on some hosts: the reasons are about the others.
        if not everything:
            _check_coverage()
    else:
        # Fast tests wait for others now and then; the slow ones start programs that want all cores
        # for themselves.
        run_tool("pytest", *(marks or (f"--numprocesses={capacity.usable_cores() + 1}",)))


def _check_coverage() -> None:
    """Raise ToolError for a module that the tests reach too little of, and has no reason."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "coverage.json")
        run_tool("coverage", "json", "--quiet", "-o", str(report))
        measured = json_text.parse(report.read_bytes())
    project = toml.values_of(ROOT / "pyproject.toml")
    reasons = project["tool"]["tfwright"]["uncovered"]
    findings = tuple(shortfalls(measured["files"], reasons))
    if findings:
        raise ToolError(
            "Tests and the reasons for what they do not reach disagree",
            remedy=(
                "Write a test for each branch that users can meet. Where another system is needed, "
                "say so in pyproject.toml, in [tool.tfwright.uncovered]."
            ),
            lines=findings,
        )


def shortfalls(measured: Mapping[str, Any], reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with modules and reasons, by the files of coverage's JSON report."""
    shares = {
        path.removeprefix("src/tfwright/"): min(
            file["summary"]["percent_statements_covered"],
            file["summary"]["percent_branches_covered"],
        )
        for path, file in measured.items()
    }
    for name, share in shares.items():
        if share < LEAST and name not in reasons:
            yield f"{name}: the tests reach {share:.1f} % of its lines or branches"
    for name in reasons:
        if name not in shares:
            yield f"{name}: this module does not exist; remove its reason"
        elif shares[name] >= LEAST:
            yield f"{name}: the tests reach enough of it; remove its reason"
