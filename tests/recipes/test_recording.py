from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_program

from tfwright.configure import stanzas
from tfwright.configure.catalogue import from_recipe
from tfwright.configure.dialect import of_recipe
from tfwright.configure.interview import Interview
from tfwright.documents.recipe import PromptTable
from tfwright.errors import RecipeError
from tfwright.recipes.recording import RecordedQuestion, Recorder
from tfwright.tools.process import dialogue
from tfwright.tools.process.command import Command

pytestmark = pytest.mark.medium

SCRIPT = """\
set_build_var(environ_cp, 'TF_NEED_IPU_HOROVOD', 'Horovod for IPU (requires MPI)', False)
get_var(environ_cp, 'TF_NEED_FOO', 'FOO')
"""
KNOWN = PromptTable(variable="TF_NEED_FOO", question="Foo? [y/N]: ", kind="yes-no")


def recorded(
    tmp_path: Path, script: str, *answers: str, prompt: PromptTable = KNOWN
) -> tuple[Recorder, list[RecordedQuestion]]:
    """Let a shell script ask on a real terminal; a person gives the answers in order."""
    program = make_program(tmp_path / "configure", f"#!/bin/sh\n{script}")
    heard: list[RecordedQuestion] = []
    given = iter(answers)

    def ask(question: RecordedQuestion) -> str:
        heard.append(question)
        return next(given)

    interview = Interview(of_recipe("Linux", [prompt]), {"TF_NEED_FOO": True})
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


def test_the_recorded_table_matches_the_question_on_another_host(tmp_path: Path) -> None:
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
    with fails(RecipeError):
        recorded(tmp_path, script, *["n"] * 300)


def test_a_wrong_answer_to_an_unknown_question_is_asked_for_again_once_recorded(
    tmp_path: Path,
) -> None:
    question = "printf 'Do you wish to build TensorFlow with Warp support? [y/N]: '; read a"
    script = f"{question}; echo Invalid selection: $a; {question}; echo $a > answered"
    recorder, heard = recorded(tmp_path, script, "maybe", "Y")
    assert [one.refused for one in heard] == ["", "Invalid selection: maybe"]
    assert [one.variable for one in recorder.questions] == ["TF_NEED_WARP"]
    assert recorder.answers == {"TF_NEED_WARP": True}


def test_an_answer_that_was_refused_is_not_kept_where_no_other_follows() -> None:
    given = iter(["maybe"])
    recorder = Recorder(Interview(of_recipe("Linux", [KNOWN]), {}), ask=lambda _: next(given))
    recorder.answer("Foo? [y/N]: ")
    assert recorder.answers == {"TF_NEED_FOO": False}
    with pytest.raises(StopIteration):
        recorder.answer("Invalid selection: maybe\nFoo? [y/N]: ")
    assert recorder.answers == {}


def test_an_answer_that_is_refused_after_later_ones_is_asked_for_with_the_reason(
    tmp_path: Path,
) -> None:
    asks = "printf 'Which warp? [Leave empty]: '; read a; printf 'Where is it? [Leave empty]: '; read b"
    script = f"{asks}; echo No warp $a in $b; {asks}; echo $a $b > answered"
    recorder, heard = recorded(tmp_path, script, "8", "/opt", "9", "/opt")
    assert [one.refused for one in heard] == ["", "", "No warp 8 in /opt", ""]
    assert list(recorder.answers.values()) == ["9", "/opt"]


def test_the_version_that_an_empty_line_would_mean_is_typed(tmp_path: Path) -> None:
    question = "Which warp? [Leave empty to  default to Warp 9.0]: "
    script = f"printf '{question}'; read a; echo $a > answered"
    recorder, _ = recorded(tmp_path, script, "")
    assert (tmp_path / "answered").read_text("utf-8") == "9.0\n"
    assert list(recorder.answers.values()) == ["9.0"]


def test_a_question_that_means_no_by_y_is_recorded_as_it_was_answered(tmp_path: Path) -> None:
    inverted = PromptTable(
        variable="TF_NEED_CUDA",
        question="Y for CPU, N for GPU? [Y/n]: ",
        kind="yes-no",
        yes="n",
        no="y",
    )
    script = "printf 'Y for CPU, N for GPU? [Y/n]: '; read a"
    recorder, _ = recorded(tmp_path, script, "y", prompt=inverted)
    assert recorder.answers == {"TF_NEED_CUDA": False}


@pytest.mark.parametrize(
    ("printed", "question"),
    [
        ("Warp \x1b[1mDrive\x1b[0m? [y/N]: ", "Warp *Drive*? [y/N]: "),
        ("***** a * b * c * d * Foo? ", " b * c * d * Foo? "),
        ("Which kind?\n> ", "Which kind?\n> "),
        ("a\tb\x07 Foo? ", "a*b* Foo? "),
        ("x" * 5000 + "? ", "x" * 1498 + "? "),
        ("report\nFoo bar: ", "Foo bar: "),
    ],
)
def test_every_question_is_written_so_that_a_recipe_can_hold_it(
    printed: str, question: str
) -> None:
    text = stanzas.question_pattern(stanzas.question_in(printed))
    assert text.endswith(question)
    table = PromptTable(variable="X", question=text)
    assert from_recipe(table).pattern.search(printed)


@pytest.mark.parametrize(
    ("question", "variable"),
    [
        (
            "Do you wish to build TensorFlow with Warp \x1b[1mX\x1b[0m support? [y/N]: ",
            "TF_NEED_WARP_X",
        ),
        ("TensorFlow with Éclair & co. support? ", "TF_NEED_CLAIR_CO"),
        ("TensorFlow with ??? support? ", "VARIABLE_THAT_CONFIGURE_READS"),
    ],
)
def test_a_guessed_variable_is_one_that_a_recipe_takes(question: str, variable: str) -> None:
    assert stanzas.variable_of(question) == variable


def test_a_variable_is_found_beside_words_in_colour_and_never_a_reserved_one() -> None:
    script = "support('TF_NEED_WARP', 'Warp drive \\x1b[1mfast')\nget('PATH', 'Where')"
    question = "build TensorFlow with Warp drive \x1b[1mfast\x1b[0m support? "
    assert stanzas.variable_in(script, question) == "TF_NEED_WARP"
    assert stanzas.variable_in("get('PATH', 'Where')", "Where [x]: ") == ""
