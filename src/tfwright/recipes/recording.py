"""A dialogue with ./configure, written down: what it asks and what a person answers."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tfwright.configure import stanzas
from tfwright.configure.answering import Answerer
from tfwright.configure.catalogue import Answer
from tfwright.errors import RecipeError
from tfwright.tools.process.dialogue import last_lines

MOST_QUESTIONS = 200
"""TensorFlow asks fewer than 40; a program that goes on is asking the same things again."""


@dataclass(frozen=True)
class RecordedQuestion:
    """A question that the recipe does not answer, and what ./configure would take for Enter."""

    variable: str
    text: str
    yes_no: bool
    default: str
    """As a person would type it; empty if the question names none."""
    known: bool
    """Whether the catalogue, or the recipe, has the question already."""
    yes: str = "y"
    """What is typed for yes; some questions take it for the other way round."""
    refused: str = ""
    """What ./configure says of the last answer, if it asks for that again."""


Ask = Callable[[RecordedQuestion], str]
"""Asks a person; returns what was typed, empty for Enter."""


@dataclass
class Recorder(Answerer):
    """Types the recipe's answers, asks a person for the others, and remembers both."""

    ask: Ask = lambda _: ""
    script: str = ""
    """The program's text; it names the variables that it reads the answers into."""
    answers: dict[str, Answer] = field(default_factory=dict)
    """What was answered in addition to the recipe."""
    questions: list[RecordedQuestion] = field(default_factory=list)
    """The questions that neither the catalogue nor the recipe has."""

    def answer(self, text: str) -> str:
        """Return the line to type; raise RecipeError where the same is asked without end."""
        prompt = self._find(text)
        if len(self.asked) >= MOST_QUESTIONS:
            raise RecipeError(
                f"./configure asked {MOST_QUESTIONS} questions and does not end",
                remedy="Look at its last lines; it may not accept an answer.",
                lines=last_lines(text),
            )
        interview_answers = self.interview.answers
        # An answer that was not accepted is asked for again; then a person has to correct it.
        if prompt and prompt.variable in interview_answers and prompt.variable not in self.asked:
            self.asked.append(prompt.variable)
            return prompt.typed_line(interview_answers[prompt.variable])
        question = stanzas.question_in(text)
        choice = re.search(r"\[(y/n)\]", question, re.IGNORECASE)
        preceding_lines = filter(str.strip, text.removesuffix(question).splitlines())
        # The capital letter is what Enter means.
        letter = "y" if choice and choice[1][0] == "Y" else "n"
        recorded = RecordedQuestion(
            variable=prompt.variable if prompt else self._find_variable(text, question),
            text=question,
            yes_no=prompt.yes_no if prompt else choice is not None,
            default=letter if choice else _stated_default(question),
            known=prompt is not None,
            yes=prompt.yes if prompt else "y",
        )
        # One answer may be refused after others: a CUDA that is not below the paths.
        if recorded.variable in self.asked:
            recorded = replace(recorded, refused="\n".join(preceding_lines))
            # Should this be the end, it is not kept.
            self.answers.pop(recorded.variable, None)
        line = self.ask(recorded).strip() or recorded.default
        self._remember(recorded, line)
        return line

    def _find_variable(self, text: str, question: str) -> str:
        """Return the variable that the script reads the answer into, or else a guess."""
        # The same words again: the answer was not accepted.
        wording = stanzas.question_pattern(question)
        for recorded in self.questions:
            if stanzas.question_pattern(recorded.text) == wording:
                return recorded.variable
        guess = stanzas.variable_in(self.script, question) or stanzas.variable_of(text)
        taken = {*self.asked, *(recorded.variable for recorded in self.questions)}
        number, unique = 2, guess
        while unique in taken:
            unique, number = f"{guess}_{number}", number + 1
        return unique

    def _remember(self, recorded: RecordedQuestion, line: str) -> None:
        self.asked.append(recorded.variable)
        yes = line[:1].lower() == recorded.yes[:1].lower()
        self.answers[recorded.variable] = yes if recorded.yes_no else line
        before = {question.variable for question in self.questions}
        if not recorded.known and recorded.variable not in before:
            self.questions.append(recorded)


def _stated_default(question: str) -> str:
    """Return what a question takes for an empty line; empty if it does not say."""
    stated = re.search(r"\[Default is:? ?([^\]\n]*)\]", question)
    if stated:
        return stated[1].strip()
    # "Leave empty to default to CUDA 9.0": stated, so that the recipe pins it.
    version = re.search(r"\[Leave empty to +default to \D*([\d.]*\d)\]", question)
    return version[1] if version else ""
