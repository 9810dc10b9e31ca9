"""The answers to ./configure's questions: from the recipe, once each, and never guessed."""

import re
from dataclasses import dataclass, field

from tfwright.configure import catalogue, stanzas
from tfwright.configure.catalogue import Prompt
from tfwright.configure.dialect import Dialect
from tfwright.configure.interview import Interview, as_text
from tfwright.errors import RecipeError, invoke
from tfwright.tools.process.dialogue import last_lines


@dataclass
class Answerer:
    """Knows the possible questions and the recipe's answers; see `dialogue.Respondent`."""

    interview: Interview
    asked: list[str] = field(default_factory=list)
    """Variables that were asked for, in this order."""

    def recognises(self, text: str) -> bool:
        """Say whether `text` ends in a question of this dialect."""
        return self._find(text) is not None

    def answer(self, text: str) -> str:
        """Return the line to type.

        Raises RecipeError for a question that is not in the catalogue, one that the recipe does
        not answer, one whose answer TensorFlow did not take, and any where the answers are in the
        environment.
        """
        prompt = self._find(text)
        if prompt is None:
            raise unknown_question(text, self.interview.dialect)
        if prompt.variable not in self.interview.answers:
            raise missing_answers([prompt], text)
        answer = self.interview.answers[prompt.variable]
        if self.interview.by == "environment":
            # From 1.4 on a value that does not work, as a path that does not exist, becomes a
            # question.
            line = as_text(answer, "1", "0")
            raise RecipeError(
                f"./configure does not accept {prompt.variable}={line!r} "
                "from the environment: it asks for it",
                remedy=f"Correct {prompt.variable}; the lines say why. "
                'Or set by = "dialogue" in [configure].',
                lines=last_lines(text),
            )
        line = prompt.typed_line(answer)
        # ./configure asks again when it rejects an answer; the same answer would not satisfy it.
        if prompt.variable in self.asked:
            raise RecipeError(
                f"./configure does not accept {line!r} for {prompt.variable}: it asks again",
                remedy=f"Correct {prompt.variable}, or what it depends on; the lines say why.",
                lines=last_lines(text),
            )
        self.asked.append(prompt.variable)
        return line

    def _find(self, text: str) -> Prompt | None:
        # By text and not by position: which questions come depends on the host and on
        # other answers.
        return catalogue.match_question(text, self.interview.dialect.prompts)


def unknown_question(text: str, dialect: Dialect) -> RecipeError:
    """Return the error for a question that is not in the catalogue, with the lines to add."""
    question = stanzas.question_in(text)
    if not question.strip():
        return RecipeError(
            "./configure waits for input without having asked a question",
            remedy="Add a patch to the recipe, so that it asks before it reads, or does not read.",
            lines=last_lines(text),
        )
    if failed := _TRACEBACK.findall(text):
        raised = failed[-1].strip()
        return RecipeError(
            f"A Python program failed before ./configure asked {question.strip()!r}: {raised}",
            remedy="Correct what the traceback says first: it can be the cause of the question. "
            "A module that is missing belongs into [host] requirements: "
            f"'{invoke('pin')} --add NAME'. If the question is meant all the same, "
            f"'{invoke('record')}' asks you and writes it.",
            lines=last_lines(text),
        )
    # The capital letter is the default, which differs between releases.
    yes_no = re.search(r"\[y/n\]", question, re.IGNORECASE) is not None
    variable = stanzas.variable_of(text)
    return RecipeError(
        f"./configure asks a question that is not known for {dialect}: {question.strip()}",
        remedy=f"Let '{invoke('record')}' ask you and write the lines. Or find out which variable "
        "configure reads the answer into, and what it writes. "
        f"Then add to the recipe {stanzas.WHERE}:\n"
        f"{stanzas.prompt(question, variable, yes_no=yes_no)}",
        lines=last_lines(text),
    )


# The line of the exception ends the indented lines of a traceback.
_TRACEBACK = re.compile(
    r"(?m)^Traceback \(most recent call last\):\r?\n(?:[ \t].*\n)*([A-Za-z_][^\n]*)"
)


def missing_answers(prompts: list[Prompt], text: str = "") -> RecipeError:
    """Return the error for questions that the recipe does not answer, with the lines to add."""
    variables = [prompt.variable for prompt in prompts]
    remedy = f"Add to the recipe {stanzas.WHERE}, with your answers:\n{stanzas.answers(prompts)}"
    # Paths differ from host to host, so a recipe with one would only work on its author's.
    if _CUDA_PATHS & set(variables):
        remedy += '\nThe places of CUDA and cuDNN belong in the host file: cuda = "/usr/local/cuda"'
    return RecipeError(
        f"The recipe does not answer what ./configure asks for: {', '.join(variables)}",
        remedy=remedy,
        lines=last_lines(text),
    )


_CUDA_PATHS = {"CUDA_TOOLKIT_PATH", "CUDNN_INSTALL_PATH", "TF_CUDA_PATHS"}
