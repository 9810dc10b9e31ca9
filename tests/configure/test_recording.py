from pathlib import Path

import pytest

from tfwright.configure import stanzas
from tfwright.configure.dialect import of_recipe
from tfwright.configure.interview import Interview
from tfwright.configure.recording import HeardQuestion, Recorder
from tfwright.documents.recipe import PromptTable
from tfwright.errors import RecipeError
from tfwright.tools.process import dialogue
from tfwright.tools.process.command import Command

SCRIPT = """\
set_build_var(environ_cp, 'TF_NEED_IPU_HOROVOD', 'Horovod for IPU (requires MPI)', False)
get_var(environ_cp, 'TF_NEED_FOO', 'FOO')
"""
KNOWN = PromptTable(variable="TF_NEED_FOO", question="Foo? [y/N]: ", kind="yes-no")


def recorded(
    tmp_path: Path, script: str, *answers: str
) -> tuple[Recorder, list[HeardQuestion]]:
    """Let a shell script ask on a real terminal; a person gives the answers in order."""
    program = tmp_path / "configure"
    program.write_text(f"#!/bin/sh\n{script}", "utf-8")
    program.chmod(0o755)
    heard: list[HeardQuestion] = []
    given = iter(answers)

    def ask(question: HeardQuestion) -> str:
        heard.append(question)
        return next(given)

    interview = Interview(of_recipe("Linux", [KNOWN]), {"TF_NEED_FOO": True})
    recorder = Recorder(interview, ask=ask, script=SCRIPT)
    command = Command((str(program),), tmp_path, {"PATH": "/usr/bin:/bin"})
    dialogue.converse(command, tmp_path / "log", recorder, timeout=20)
    return recorder, heard


ASKS = """\
printf 'Foo? [y/N]: '; read foo
printf 'Do you wish to build TensorFlow with Horovod for IPU (requires MPI) support? [y/N]: '
read horovod
printf 'Where is it? [Default is /opt/x]: '; read place
echo "$foo $horovod $place" > answered
"""


def test_what_the_recipe_answers_is_typed_and_the_rest_is_asked_and_remembered(
    tmp_path: Path,
) -> None:
    recorder, heard = recorded(tmp_path, ASKS, "y", "")
    assert (tmp_path / "answered").read_text("utf-8") == "y y /opt/x\n"
    assert recorder.questions[0].variable == "TF_NEED_IPU_HOROVOD"
    assert [question.default for question in heard] == ["n", "/opt/x"]
    assert recorder.answers["TF_NEED_IPU_HOROVOD"] is True
    assert "/opt/x" in recorder.answers.values()


def test_the_recorded_table_matches_the_question_on_another_host(
    tmp_path: Path,
) -> None:
    recorder, _ = recorded(tmp_path, ASKS, "", "")
    place = recorder.questions[1]
    lines = stanzas.table(place.text, place.variable, yes_no=place.yes_no)
    assert 'question = "Where is it? [Default is *]: "' in lines


def test_an_answer_that_is_not_accepted_is_asked_for_again(tmp_path: Path) -> None:
    script = "printf 'Foo? [y/N]: '; read a; printf 'Foo? [y/N]: '; read b; echo $a $b > answered"
    recorder, heard = recorded(tmp_path, script, "n")
    assert [question.known for question in heard] == [True]
    assert recorder.answers == {"TF_NEED_FOO": False}
    assert recorder.questions == []


def test_a_program_that_asks_without_end_is_stopped(tmp_path: Path) -> None:
    script = "while :; do printf 'Foo? [y/N]: '; read a; done"
    with pytest.raises(RecipeError, match="does not end"):
        recorded(tmp_path, script, *["n"] * 300)
