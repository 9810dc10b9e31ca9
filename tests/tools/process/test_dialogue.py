"""Talking to a program on a real pty: bash's `read -p` and Python's input(), as configure uses both."""

import os
import re
import sys
import time
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_program

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


def python(code: str, folder: Path) -> Command:
    return Command((sys.executable, "-c", code), folder, {"PATH": os.defpath})


def talk(
    command: Command, answers: dict[str, str], timeout: float = 5
) -> tuple[dialogue.Spoken, list[str]]:
    parrot = Parrot(answers)
    return dialogue.converse(command, command.cwd / "log", parrot, timeout=timeout), parrot.heard


@pytest.mark.medium
def test_bash_and_python_prompts_are_both_seen_and_answered(tmp_path: Path) -> None:
    code = "print('got', input('Second? [y/N]: '))"
    spoken, _ = talk(
        bash(f'read -p "First? [y/N] " A; echo "got $A"; {sys.executable} -c "{code}"', tmp_path),
        {r"First\? \[y/N\] ": "y", r"Second\? \[y/N\]: ": "n"},
    )
    assert spoken.status == 0
    assert re.findall(r"got (\w)", spoken.text) == ["y", "n"]


@pytest.mark.medium
def test_answers_are_not_echoed_into_the_text_but_stand_in_the_log(tmp_path: Path) -> None:
    spoken, _ = talk(
        bash('read -p "Where? [Default is /a]: " A', tmp_path),
        {r"Where\? \[Default is .*\]: ": "/b [Default is /c]: "},
    )
    assert "/b" not in spoken.text
    assert "Where? [Default is /a]: /b" in (tmp_path / "log").read_text()


@pytest.mark.medium
def test_a_question_that_ends_in_a_line_break_is_answered(tmp_path: Path) -> None:
    script = (
        'echo "Found:"; echo "  /lib"; echo "Which path to use.  Default is [/lib]"; read A; echo '
        '"got $A"'
    )
    spoken, heard = talk(
        bash(script, tmp_path), {r"Which path to use\.  Default is \[.*\]\n": "/mine"}
    )
    assert "got /mine" in spoken.text
    assert heard == ["Found:\n  /lib\nWhich path to use.  Default is [/lib]\n"]


@pytest.mark.medium
def test_a_question_without_a_space_behind_it_is_answered(tmp_path: Path) -> None:
    spoken, _ = talk(
        python("print('got', input('Capabilities [Default is: 3.5,5.2]'))", tmp_path),
        {r"Capabilities \[Default is: .*\](: )?": "6.1"},
    )
    assert "got 6.1" in spoken.text


@pytest.mark.medium
def test_a_question_that_arrives_in_pieces_is_answered_once(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfor part in ('Cap', 'abilities [3.5]', ': '):\n    "
        "sys.stdout.write(part); sys.stdout.flush(); time.sleep(0.005)\nprint('got', "
        "input())\nprint('got', input('Next: '))"
    )
    spoken, heard = talk(
        python(code, tmp_path), {r"Capabilities \[3\.5\](: )?": "a", "Next: ": "b"}
    )
    assert re.findall(r"got (\w)", spoken.text) == ["a", "b"]
    assert len(heard) == 2


@pytest.mark.medium
def test_text_before_a_question_does_not_answer_it(tmp_path: Path) -> None:
    script = (
        'echo "WARNING: compute capabilities [Default is: 3.5]: too low"; read -p "Use clang? '
        '[y/N]: " A; echo "got $A"'
    )
    spoken, _ = talk(
        bash(script, tmp_path),
        {r"compute capabilities \[Default is: .*\]: ": "3.0", r"Use clang\? \[y/N\]: ": "n"},
    )
    assert "got n" in spoken.text


@pytest.mark.medium
def test_a_long_path_does_not_wrap(tmp_path: Path) -> None:
    _, heard = talk(
        bash(f'read -p "Where? [Default is {"/x" * 500}]: " A', tmp_path),
        {r"Where\? \[Default is [/x]*\]: ": ""},
    )
    assert len(heard) == 1


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
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 5
    while (
        Path(f"/proc/{child}").exists()
        and time.monotonic() < deadline
        and "Z" not in Path(f"/proc/{child}/stat").read_text().split()[2:3]
    ):
        time.sleep(0.05)
    assert (
        not Path(f"/proc/{child}").exists()
        or Path(f"/proc/{child}/stat").read_text().split()[2] == "Z"
    )


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
