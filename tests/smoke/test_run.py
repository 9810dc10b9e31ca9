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

Run = Callable[..., TrialOutcome]
RESULT = '{"status": "passed", "reason": "it went well", "numbers": {"seconds": 1.5}}'


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that tries a program with the given text."""

    def run(text: str, seconds: float = 30) -> TrialOutcome:
        program = make_file(tmp_path / "program.py", f"import os, signal, sys, time\n{text}\n")
        command = Command((sys.executable, str(program)), tmp_path, dict(os.environ))
        return trying.run("program", command, tmp_path / "program.log", seconds)

    return run


def test_a_result_is_found_though_something_else_has_the_last_word(run: Run) -> None:
    outcome = run(f"print('warning'); print('''{RESULT}'''); print('{{}}'); print('bye')")
    assert (outcome.status, outcome.reason) == ("passed", "it went well")
    assert outcome.numbers == {"seconds": 1.5}
    assert "warning" in Path(outcome.log).read_text("utf-8")


ENDS = {
    "it says itself why it failed": (
        """print('{"status": "failed", "reason": "no GPU", "numbers": {}}'); sys.exit(1)""",
        "failed",
        "no GPU",
    ),
    "a crash has a usual cause": (
        "os.kill(os.getpid(), signal.SIGILL)",
        "failed",
        "it crashed (SIGILL): usually the wheel needs instructions, such as AVX, that this CPU has",
    ),
    "a crash after the work": (
        f"print('''{RESULT}''', flush=True); os.kill(os.getpid(), signal.SIGSEGV)",
        "failed",
        "it crashed (SIGSEGV, after it had done its work): usually a library",
    ),
    "a signal without a name": (
        f"os.kill(os.getpid(), {signal.SIGRTMIN + 5})",
        "failed",
        f"it crashed (signal {signal.SIGRTMIN + 5}): its log says more",
    ),
    "no result but a last line": (
        "import nothing_of_this_name",
        "failed",
        "it came to no result (exit status 1): ModuleNotFoundError: No module named 'nothing_of",
    ),
    "nothing at all": ("", "failed", "it came to no result (exit status 0): nothing was printed"),
    "it claims to have passed and exits otherwise": (
        f"print('''{RESULT}'''); sys.exit(3)",
        "failed",
        "it came to no result (exit status 3)",
    ),
    "it would move the cursor": (
        r"""print('{"status": "passed", "reason": "a\\u001b[2Jb\\nc", "numbers": {}}')""",
        "passed",
        r"a\x1b[2Jb c",
    ),
    "much is printed before and after": (
        f"print('{{' * 9_000_000); print({RESULT!r}); print('x' * 9000)",
        "passed",
        "it went well",
    ),
}


@pytest.mark.medium
@pytest.mark.parametrize("way", ENDS)
def test_a_program_is_judged_by_its_result_and_by_how_it_ended(run: Run, way: str) -> None:
    text, status, reason = ENDS[way]
    outcome = run(text)
    assert outcome.status == status
    assert outcome.reason.startswith(reason)


@pytest.mark.medium
def test_a_program_that_hangs_is_ended(run: Run) -> None:
    outcome = run("print('started', flush=True); time.sleep(600)", seconds=0.5)
    assert (outcome.status, outcome.reason) == ("failed", "it hung, and was ended after 0.5 s")
    assert outcome.seconds < 30


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
