"""Talking to a program on a real pty: bash's `read -p` and Python's input(), as configure uses both."""

import os
import re
import sys
import time
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_program
from tests.tools.process.test_runner import await_end

from tfwright.errors import HostError, RecipeError, ToolError
from tfwright.tools.process import dialogue
from tfwright.tools.process.command import Command


class Parrot:
    """Knows a few questions; each has one answer."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers
        self.heard: list[str] = []

    def _find(self, text: str) -> str | None:
        return next(
            (pattern for pattern in self.answers if re.search(rf"(?:{pattern})\Z", text)), None
        )

    def recognises(self, text: str) -> bool:
        return self._find(text) is not None

    def answer(self, text: str) -> str:
        self.heard.append(text)
        found = self._find(text)
        if found is None:
            raise RecipeError("unknown", remedy="-")
        return self.answers[found]


def bash(script: str, folder: Path, **env: str) -> Command:
    return Command(("/bin/bash", "-c", script), folder, {"PATH": os.defpath, **env})


def talk(
    command: Command, answers: dict[str, str], timeout: float = 5
) -> tuple[dialogue.Spoken, list[str]]:
    parrot = Parrot(answers)
    return dialogue.converse(command, command.cwd / "log", parrot, timeout=timeout), parrot.heard


ASKED = {
    "bash and Python": (
        f"""read -p "First? [y/N] " A; echo "got $A"
        {sys.executable} -c "print('got', input('Second? [y/N]: '))" """,
        {r"First\? \[y/N\] ": "y", r"Second\? \[y/N\]: ": "n"},
    ),
    "with a line break at the end": (
        'echo "Found:"; echo "Default is [/lib]"; read A; echo "got $A"',
        {r"Found:\nDefault is \[.*\]\n": "m"},
    ),
    "without a space at the end": (
        """python3 -c "print('got', input('Capabilities [Default is: 3.5]'))" """,
        {r"Capabilities \[Default is: .*\](: )?": "6"},
    ),
    "in pieces": (
        """for part in Cap "abilities [3.5]" ": "; do printf "$part"; sleep 0.005; done
        read A; echo "got $A"; read -p "Next: " A; echo "got $A" """,
        {r"Capabilities \[3\.5\](: )?": "a", "Next: ": "b"},
    ),
    "after the text of another": (
        """echo "WARNING: capabilities [Default is: 3.5]: too low"
        read -p "Use clang? [y/N]: " A; echo "got $A" """,
        {r"Use clang\? \[y/N\]: ": "n", r"capabilities \[Default is: .*\]: ": "3"},
    ),
    "longer than a terminal is wide": (
        f'read -p "Where? [Default is {"/x" * 500}]: " A; echo "got $A"',
        {r"Where\? \[Default is [/x]*\]: ": "w"},
    ),
}


@pytest.mark.medium
@pytest.mark.parametrize(("script", "answers"), ASKED.values(), ids=ASKED)
def test_a_question_is_answered_once_however_it_is_asked(
    tmp_path: Path, script: str, answers: dict[str, str]
) -> None:
    spoken, heard = talk(bash(script, tmp_path), answers)
    assert spoken.status == 0
    assert re.findall(r"got (\w)", spoken.text) == list(answers.values())[: len(heard)]
    assert len(heard) == spoken.text.count("got ")


@pytest.mark.medium
def test_answers_are_not_echoed_into_the_text_but_stand_in_the_log(tmp_path: Path) -> None:
    spoken, _ = talk(
        bash('read -p "Where? [Default is /a]: " A', tmp_path),
        {r"Where\? \[Default is .*\]: ": "/b [Default is /c]: "},
    )
    assert "/b" not in spoken.text
    assert "Where? [Default is /a]: /b" in (tmp_path / "log").read_text()


@pytest.mark.medium
def test_a_question_nobody_knows_stops_long_before_the_timeout(tmp_path: Path) -> None:
    before = time.monotonic()
    with fails(RecipeError, "unknown"):
        talk(
            bash('read -p "Do you like quantum computers? [y/N]: " A; touch went-on', tmp_path),
            {},
            timeout=60,
        )
    assert time.monotonic() - before < 10
    assert not (tmp_path / "went-on").exists()


@pytest.mark.medium
def test_silence_is_an_error_that_shows_the_last_lines(tmp_path: Path) -> None:
    with fails(ToolError, "1 seconds") as caught:
        talk(bash('echo "Extracting..."; sleep 60', tmp_path), {}, timeout=0.5)
    assert caught.value.evidence.lines == ("Extracting...",)


@pytest.mark.medium
def test_nothing_is_left_running_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError):
        talk(bash("sleep 60 & echo $! >child; wait", tmp_path), {}, timeout=0.5)
    await_end(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("kill -9 $$", -9), ("true", 0)])
@pytest.mark.medium
def test_the_end_is_reported_with_its_status(tmp_path: Path, script: str, status: int) -> None:
    assert talk(bash(script, tmp_path), {})[0].status == status


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo", "names no interpreter"),
        ("", "names no interpreter"),
        ("\ufeff#!/bin/sh\n", "names no interpreter"),
        ("#!/no/such/shell\n", "names is not installed"),
    ],
)
def test_a_program_that_the_kernel_does_not_start_is_a_fault_that_says_why(
    text: str, why: str, tmp_path: Path
) -> None:
    program = make_program(tmp_path / "configure", text)
    with pytest.raises(HostError, match=why) as caught:
        talk(Command((str(program),), tmp_path, {}), {})
    assert "#!/bin/bash" in caught.value.remedy


def test_the_callers_environment_does_not_leak_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_NEED_CUDA", "1")
    assert "cuda=." in talk(bash('echo "cuda=$TF_NEED_CUDA."', tmp_path), {})[0].text
