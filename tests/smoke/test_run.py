import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue
from tests.making import make_file

from tfwright.smoke import PROGRAMS
from tfwright.smoke import run as trying
from tfwright.smoke.run import TrialOutcome
from tfwright.tools.process.command import Command

RESULT = '{"status": "passed", "reason": "it went well", "numbers": {"seconds": 1.5}}'


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., TrialOutcome]:
    """Return a function that tries a program with the given text."""

    def run(text: str, seconds: float = 30) -> TrialOutcome:
        program = make_file(tmp_path / "program.py", f"import os, signal, sys, time\n{text}\n")
        return trying.run(
            "program",
            Command((sys.executable, str(program)), tmp_path, dict(os.environ)),
            tmp_path / "program.log",
            seconds,
        )

    return run


def test_a_result_is_found_though_something_else_has_the_last_word(
    run: Callable[..., TrialOutcome],
) -> None:
    outcome = run(f"print('warning'); print('''{RESULT}'''); print('{{}}'); print('bye')")
    assert (outcome.status, outcome.reason, outcome.numbers) == (
        "passed",
        "it went well",
        {"seconds": 1.5},
    )
    assert "warning" in Path(outcome.log).read_text("utf-8")


def test_a_program_says_itself_why_it_failed(run: Callable[..., TrialOutcome]) -> None:
    outcome = run(
        """print('{"status": "failed", "reason": "no GPU", "numbers": {}}'); sys.exit(1)"""
    )
    assert (outcome.status, outcome.reason) == ("failed", "no GPU")


def test_a_crash_is_named_with_what_it_usually_means(run: Callable[..., TrialOutcome]) -> None:
    outcome = run("os.kill(os.getpid(), signal.SIGILL)")
    assert outcome.status == "failed"
    assert outcome.reason == (
        "it crashed (SIGILL): usually the wheel needs instructions, such as AVX, that this "
        "CPU has not"
    )


def test_a_crash_after_the_work_is_a_failure_all_the_same(run: Callable[..., TrialOutcome]) -> None:
    outcome = run(f"print('''{RESULT}''', flush=True); os.kill(os.getpid(), signal.SIGSEGV)")
    assert outcome.status == "failed"
    assert outcome.reason.startswith(
        "it crashed (SIGSEGV, after it had done its work): usually a library"
    )


@pytest.mark.medium
def test_a_program_that_hangs_is_ended(run: Callable[..., TrialOutcome]) -> None:
    outcome = run("print('started', flush=True); time.sleep(600)", seconds=0.5)
    assert (outcome.status, outcome.reason) == ("failed", "it hung, and was ended after 0.5 s")
    assert outcome.seconds < 30


@pytest.mark.medium
def test_no_result_is_a_failure_with_the_last_line(run: Callable[..., TrialOutcome]) -> None:
    assert run("import nothing_of_this_name").reason.endswith(
        "(exit status 1): ModuleNotFoundError: No module named 'nothing_of_this_name'"
    )
    assert run("").reason == "it came to no result (exit status 0): nothing was printed"


def test_a_program_that_claims_to_have_passed_and_exits_otherwise_is_not_believed(
    run: Callable[..., TrialOutcome],
) -> None:
    assert run(f"print('''{RESULT}'''); sys.exit(3)").status == "failed"


def test_what_would_move_the_cursor_is_not_passed_on(run: Callable[..., TrialOutcome]) -> None:
    outcome = run(r"""print('{"status": "passed", "reason": "a\\u001b[2Jb\\nc", "numbers": {}}')""")
    assert outcome.reason == "a [2Jb c"


@pytest.mark.parametrize(
    "curves",
    [
        None,
        {"cpu": []},
        {"cpu": [{"size": 32, "seconds": -1.0, "gflops": 1.0}]},
        {"cpu": [{"size": 32, "seconds": float("inf"), "gflops": 1.0}]},
        {"<b>": [{"size": 32, "seconds": 1.0, "gflops": 1.0}]},
    ],
)
def test_curves_that_cannot_be_drawn_are_none(curves: JsonValue) -> None:
    assert trying.curves([TrialOutcome("sweep", "passed", "", numbers={"curves": curves})]) == {}


def test_every_program_is_in_the_order_and_says_what_it_shows() -> None:
    found = {path.stem for path in PROGRAMS.glob("*.py")}
    assert found == {*trying.ORDER, "compatibility"}


def test_a_signal_without_a_name_is_a_crash_too(run: Callable[..., TrialOutcome]) -> None:
    number = signal.SIGRTMIN + 5
    outcome = run(f"os.kill(os.getpid(), {number})")
    assert outcome.reason == f"it crashed (signal {number}): its log says more"


def test_the_result_is_found_behind_whatever_was_printed_before(
    run: Callable[..., TrialOutcome],
) -> None:
    outcome = run(f"print('{{' * 9_000_000); print({RESULT!r}); print('x' * 9000)")
    assert outcome.status == "passed"
