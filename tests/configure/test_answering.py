"""Who answers ./configure, and what a message tells to add."""

import tomllib

from tests.failing import fails

from tfwright.configure import answering, dialect
from tfwright.configure.catalogue import Answers, from_recipe
from tfwright.configure.interview import By, Interview
from tfwright.documents.recipe import PromptTable
from tfwright.documents.release import ExactRelease
from tfwright.errors import RecipeError

GDR = "Do you wish to build TensorFlow with GDR support? [y/N]: "


def interview(given: Answers, by: By = "dialogue", *own: PromptTable) -> Interview:
    return Interview(dialect.of_tensorflow(ExactRelease(1, 8), "Linux", own), given, by)


def typist(given: Answers, *own: PromptTable) -> answering.Answerer:
    return answering.Answerer(interview(given, "dialogue", *own))


def test_yes_and_no_are_typed_as_letters_and_text_as_it_is() -> None:
    someone = typist({"TF_NEED_GDR": False, "TF_NEED_CUDA": True, "PYTHON_BIN_PATH": "/p"})
    questions = [
        GDR,
        "Do you wish to build TensorFlow with CUDA support? [y/N]: ",
        "Please specify the location of python. [Default is x]: ",
    ]
    assert [someone.answer(question) for question in questions] == ["n", "y", "/p"]
    assert someone.asked == ["TF_NEED_GDR", "TF_NEED_CUDA", "PYTHON_BIN_PATH"]


def test_a_recipe_says_what_yes_and_no_are_typed_as() -> None:
    table = PromptTable(
        variable="TF_NEED_CUDA",
        question="Y for CPU, N for GPU. [Y/n] ",
        kind="yes-no",
        yes="N",
        no="Y",
    )
    assert typist({"TF_NEED_CUDA": False}, table).answer("Y for CPU, N for GPU. [Y/n] ") == "Y"


def test_no_line_to_add_has_an_empty_text_which_would_be_refused() -> None:
    flags = (
        "Please specify optimization flags to use during compilation [Default is -march=native]: "
    )
    with fails(RecipeError, 'CC_OPT_FLAGS = "-march=x86-64"'):
        typist({}).answer(flags)


def stanza(question: str) -> PromptTable:
    """Return the prompt that the error for an unknown question tells to add."""
    with fails(RecipeError, "1.8") as caught:
        typist({}).answer("Some reply.\n\n" + question)
    lines = caught.value.remedy.split("already):\n")[1]
    document = tomllib.loads(lines.replace("[[configure.prompts]]", "[[prompts]]"))
    return PromptTable.model_validate(document["prompts"][0])


def test_the_lines_for_an_unknown_question_make_it_known_once_added() -> None:
    question = "Do you wish to build TensorFlow with Quantum (beta) support? [y/N]: "
    table = stanza(question)
    assert table.variable == "TF_NEED_QUANTUM_BETA"
    assert table.kind == "yes-no"
    assert from_recipe(table).pattern.search(question)
    assert typist({"TF_NEED_QUANTUM_BETA": True}, table).answer(question) == "y"


def test_an_unknown_default_may_differ_on_the_next_host() -> None:
    table = stanza("Please specify the flux capacitor. [Default is /dev/flux]: ")
    assert table.question == "Please specify the flux capacitor. [Default is *]: "


def test_a_question_of_another_release_is_named_by_its_variable() -> None:
    question = "Do you wish to build TensorFlow with nGraph support? [y/N]: "
    assert stanza(question).variable == "TF_NEED_NGRAPH"
