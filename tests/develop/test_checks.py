"""What `invoke test`, `lint` and `types` run, with a venv of small programs in place of the real tools."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file, make_program
from tests.remedies.following import CommandLine

from tfwright.develop import checks as develop
from tfwright.errors import HostError, RecipeError, ToolError


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which the tools of a venv note how they are called."""
    noted = tmp_path / "calls"
    (tmp_path / "bin").mkdir()
    for tool in ("coverage", "lint-imports", "pytest", "ruff"):
        make_program(tmp_path / "bin" / tool, f'#!/bin/sh\necho {tool} "$@" >> {noted}\n')
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return noted


def test_a_tool_that_is_not_installed_is_named_with_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with fails(HostError, "not installed", "python3 tasks.py test"):
        develop.run_tool("mypy")


def test_a_tool_that_finds_fault_is_an_error_with_its_status(calls: Path) -> None:
    make_file(calls.parent / "bin/ruff", "#!/bin/sh\nexit 3\n")
    with fails(ToolError, "status 3") as found:
        develop.check_code()
    assert found.value.evidence.status == 3
    assert not calls.exists()


def test_the_code_is_checked_by_three_tools(calls: Path) -> None:
    develop.check_code()
    assert calls.read_text("utf-8").splitlines() == [
        "ruff check",
        "ruff format --check",
        "lint-imports --no-logo",
    ]


SUMMARY = {"percent_statements_covered": 100.0, "percent_branches_covered": 100.0}


@pytest.fixture
def project(calls: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float, str], None]:
    """Return what makes a project of one module, by the share of its branches that tests reach and the reasons."""

    def make(share: float, reasons: str) -> None:
        summary = SUMMARY | {"percent_branches_covered": share}
        files = {"src/tfwright/printable.py": {"summary": summary}}
        report = make_file(calls.parent / "report.json", json.dumps({"files": files}))
        with (calls.parent / "bin/coverage").open("a", encoding="utf-8") as tool:
            tool.write(f'[ "$1" != json ] || cp {report} "$4"\n')
        (calls.parent / "pyproject.toml").write_text(
            f"[tool.tfwright.uncovered]\n{reasons}\n", "utf-8"
        )
        monkeypatch.setattr(develop, "ROOT", calls.parent)

    return make


Project = Callable[[float, str], None]


def test_coverage_adds_up_what_the_programs_of_the_tests_ran(calls: Path, project: Project) -> None:
    project(90.0, "")
    develop.test(everything=False, coverage=True)
    steps = [line.split()[1] for line in calls.read_text("utf-8").splitlines()]
    assert steps == ["erase", "run", "combine", "report", "json"]


def test_a_reason_allows_a_module_less_coverage(project: Project) -> None:
    project(10.0, '"printable.py" = "needs a printer"')
    develop.test(everything=False, coverage=True)


@pytest.mark.parametrize(
    ("reason", "finding"),
    [
        ("printable.py", "printable.py: the tests reach enough of it; remove its reason"),
        ("gone.py", "gone.py: this module does not exist; remove its reason"),
    ],
)
def test_a_reason_that_is_no_longer_needed_is_named(
    reason: str, finding: str, project: Project
) -> None:
    project(100.0, f'"{reason}" = "needs a printer"')
    with pytest.raises(ToolError) as found:
        develop.test(everything=False, coverage=True)
    assert found.value.evidence.lines == (finding,)


def test_everything_leaves_out_the_attacks(calls: Path) -> None:
    develop.test(everything=True, coverage=False)
    assert calls.read_text("utf-8") == "pytest -m not attack\n"


def test_the_fast_tests_run_next_to_each_other(calls: Path) -> None:
    develop.test(everything=False, coverage=False)
    assert calls.read_text("utf-8").startswith("pytest --numprocesses=")


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_a_campaign_without_an_end_or_a_beginning_is_refused(seconds: float, calls: Path) -> None:
    with fails(RecipeError, "seconds"):
        develop.attack(seconds, 1)
    assert not calls.exists()


def test_an_unknown_part_of_the_attacks_is_refused_with_the_known_ones(calls: Path) -> None:
    with fails(RecipeError, "moon", "readers"):
        develop.attack(60.0, 1, "moon")
    assert not calls.exists()


def test_a_part_of_the_attacks_runs_alone_with_its_time_and_seed(
    calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Set here, so that monkeypatch removes them again.
    monkeypatch.setenv("TFWRIGHT_ATTACK_SECONDS", "")
    monkeypatch.setenv("TFWRIGHT_ATTACK_SEED", "")
    develop.attack(60.0, 7, "disks")
    assert calls.read_text("utf-8") == ("pytest tests/attack/test_disks.py -m attack\n")
    assert os.environ["TFWRIGHT_ATTACK_SECONDS"] == "60.0"
    assert os.environ["TFWRIGHT_ATTACK_SEED"] == "7"


def test_each_command_of_developers_runs_its_tools(calls: Path, shell: CommandLine) -> None:
    (calls.parent / "bin/mypy").symlink_to("ruff")
    shell.succeeds("invoke test")
    shell.succeeds("invoke types")
    ran = [line.split()[0] for line in calls.read_text("utf-8").splitlines()]
    assert ran == ["pytest", "ruff"]


@pytest.mark.medium
def test_the_recipes_are_checked_before_the_code(
    calls: Path, shell: CommandLine, recipe_file: Path
) -> None:
    assert shell.status(f"invoke lint --recipe {recipe_file}") == 2
    assert not calls.exists(), "a maintainer of recipes needs no tools"
    shell.succeeds("invoke lint")
    assert calls.read_text("utf-8").startswith("ruff check\n")
