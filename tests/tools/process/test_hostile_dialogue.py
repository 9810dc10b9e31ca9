"""Programs on a pty that ask in odd ways, ask nothing, or print without end."""

import os
import signal
import sys
import time
from pathlib import Path
from threading import Timer

import pytest
from tests.failing import fails
from tests.making import Read
from tests.tools.process.test_pseudo_terminal import needs_system_calls, state_of

from tfwright.errors import RecipeError, ToolError
from tfwright.terminal.console import show_error
from tfwright.tools.process import dialogue, pseudo_terminal
from tfwright.tools.process.command import Command

pytestmark = pytest.mark.medium

QUESTION = "Flux? [y/N]: "


@pytest.fixture(autouse=True)
def short_silences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make what counts as a silence short enough for tests."""
    monkeypatch.setattr(dialogue, "QUIET_SECONDS", 0.3)


class Flux:
    """Knows one question."""

    def recognises(self, text: str) -> bool:
        return text.endswith(QUESTION)

    def answer(self, text: str) -> str:
        if not self.recognises(text):
            raise RecipeError("unknown question", remedy="-")
        return "y"


def converse(code: str, folder: Path, timeout: float = 2) -> dialogue.Spoken:
    """Run a Python program that has `say` and `ask`."""
    helpers = "import sys, time\nsay = lambda text: print(text, end='', flush=True)\nask = input\n"
    command = Command((sys.executable, "-c", helpers + code), folder, {"PATH": os.defpath})
    return dialogue.converse(command, folder / "log", Flux(), timeout=timeout)


def test_ten_megabytes_of_lines_before_a_question_take_seconds_at_most(tmp_path: Path) -> None:
    code = f"say(('x' * 99 + '\\n') * 100_000)\nprint('got', ask({QUESTION!r}))\n"
    started = time.monotonic()
    spoken = converse(code, tmp_path, timeout=30)
    assert time.monotonic() - started < 10
    assert spoken.text.endswith("got y\n")
    assert len(spoken.text) > 10_000_000


def test_a_line_without_an_end_does_not_outlast_the_timeout(tmp_path: Path) -> None:
    started = time.monotonic()
    with fails(ToolError, "1 seconds") as caught:
        converse("say('x' * 300_000)\ntime.sleep(30)\n", tmp_path, timeout=0.5)
    assert time.monotonic() - started < 5
    assert all(len(line) < 600 for line in caught.value.evidence.lines)


@pytest.mark.parametrize(
    "code",
    [
        "time.sleep(30)",
        "say('working')\ntime.sleep(30)",
        "while True: say('.'); time.sleep(0.01)",
        "while True: say('line\\n')",
        "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\ntime.sleep(30)",
    ],
    ids=["silent", "after-text", "dots", "lines", "deaf"],
)
def test_a_program_that_neither_asks_nor_ends_is_an_error_with_a_remedy(
    code: str, tmp_path: Path, err: Read
) -> None:
    with fails(ToolError, "nothing", "timeout") as caught:
        converse(code, tmp_path, timeout=0.4)
    show_error(caught.value)
    assert "asked nothing" in err()


def test_a_program_that_prints_without_end_is_stopped_by_what_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialogue, "MOST_TEXT", 1 << 20)
    with fails(ToolError, "printed"):
        converse("while True: say('line\\n' * 1000)\n", tmp_path, timeout=30)


PAUSES = {
    "after what merely looks like a question": (
        f"say('Looking for CUDA... ')\ntime.sleep(0.8)\nprint('got', ask({QUESTION!r}))\n"
    ),
    "within the question": "say('Flux? ')\ntime.sleep(0.8)\nprint('got', ask('[y/N]: '))\n",
    "before and after the answer is read": (
        f"say({QUESTION!r})\ntime.sleep(1)\nsays = ask()\ntime.sleep(1)\nprint('got', says)\n"
    ),
}


@pytest.mark.parametrize("code", PAUSES.values(), ids=PAUSES)
def test_a_program_that_pauses_is_waited_for(tmp_path: Path, code: str) -> None:
    assert "got y" in converse(code, tmp_path, timeout=20).text


@pytest.mark.parametrize("prompt", ["Enter a value", "", "Sure?\\n"], ids=["bare", "none", "line"])
def test_a_program_that_waits_for_input_is_seen_whatever_its_question_looks_like(
    prompt: str, tmp_path: Path
) -> None:
    with fails(RecipeError, "question"):
        converse(f"ask('{prompt}')", tmp_path, timeout=20)


@needs_system_calls
def test_a_question_that_comes_between_the_last_read_and_the_look_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy machine lets the program run just there.
    go = tmp_path / "go"
    looks = pseudo_terminal.waits_for_input

    def late_look(session: int) -> bool | None:
        go.touch()
        while (waits := looks(session)) is False:
            time.sleep(0.01)
        return waits

    monkeypatch.setattr(pseudo_terminal, "waits_for_input", late_look)
    code = f"import os\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
    code += f"print('got', ask({QUESTION!r}))\n"
    assert "got y" in converse(code, tmp_path, timeout=20).text


@needs_system_calls
def test_a_program_that_is_stopped_before_it_reads_its_answer_is_waited_for(tmp_path: Path) -> None:
    class Stopper(Flux):
        """Stops the program in its read, and lets it run again a second later."""

        def answer(self, text: str) -> str:
            program = int(text.split(maxsplit=1)[0])
            while not pseudo_terminal.waits_for_input(program):
                time.sleep(0.01)
            os.kill(program, signal.SIGSTOP)
            while state_of(program) != "T":
                time.sleep(0.01)
            Timer(1, os.kill, (program, signal.SIGCONT)).start()
            return super().answer(text)

    script = f'read -p "$$ {QUESTION}" A; echo got $A'
    asks = Command(("/bin/bash", "-c", script), tmp_path, {"PATH": os.defpath})
    spoken = dialogue.converse(asks, tmp_path / "log", Stopper(), timeout=20)
    assert "got y" in spoken.text


def test_an_answer_that_a_terminal_would_cut_is_refused(tmp_path: Path) -> None:
    class Talker(Flux):
        def answer(self, text: str) -> str:
            return text and "x" * 5000

    command = Command(("/bin/bash", "-c", f"read -p '{QUESTION}'"), tmp_path, {"PATH": os.defpath})
    with fails(RecipeError, "5,000 bytes"):
        dialogue.converse(command, tmp_path / "log", Talker(), timeout=2)
