"""Who answers ./configure: from the recipe, once each, and never by guessing."""

import json
import re
from dataclasses import dataclass, field

from tfwright.configure import catalogue
from tfwright.configure.bazelrc import as_text
from tfwright.configure.catalogue import Answers, Prompt
from tfwright.documents.release import Release
from tfwright.errors import Evidence, RecipeError
from tfwright.tools.process.dialogue import last_lines


@dataclass
class Respondent:
    """Knows what a release may ask, and what the recipe says to it; see `tools.dialogue.Respondent`."""

    release: Release
    system: str
    answers: Answers
    asked: list[str] = field(default_factory=list)
    """Variables that were asked for, in this order."""

    def recognises(self, text: str) -> bool:
        """Say whether `text` ends in a question of this release."""
        return self._find(text) is not None

    def answer(self, text: str) -> str:
        """Return the line to type.

        Raises RecipeError for a question that is not in the catalogue, one that the recipe does
        not answer, and one whose answer TensorFlow did not take.
        """
        prompt = self._find(text)
        if prompt is None:
            raise unknown(text, self.release)
        if prompt.variable not in self.answers:
            raise missing([prompt], text)
        line = self.reply(prompt, text)
        self.asked.append(prompt.variable)
        return line

    def reply(self, prompt: Prompt, text: str) -> str:
        """Return the answer to a known question."""
        raise NotImplementedError

    def _find(self, text: str) -> Prompt | None:
        return catalogue.matching(text, catalogue.prompts(self.release, self.system))


class Typist(Respondent):
    """Types the answers at the prompts."""

    def reply(self, prompt: Prompt, text: str) -> str:
        """Return the answer; raise RecipeError if this very answer was given before."""
        line = as_text(self.answers[prompt.variable], "y", "n")
        if prompt.variable in self.asked:
            raise RecipeError(
                f"TensorFlow does not take {line!r} for {prompt.variable}: it asks again",
                remedy=f"Correct {prompt.variable}, or what it depends on, by what TensorFlow says in between.",
                evidence=Evidence(lines=last_lines(text)),
            )
        return line


class Watcher(Respondent):
    """Sees to it that ./configure, which has all answers in its environment, asks nothing."""

    def reply(self, prompt: Prompt, text: str) -> str:
        """Raise RecipeError: the environment did not answer after all."""
        line = as_text(self.answers[prompt.variable], "1", "0")
        raise RecipeError(
            f"TensorFlow does not take {prompt.variable}={line!r} from the environment: it asks",
            remedy=f'Correct {prompt.variable} by what TensorFlow says, or set configure.by = "dialogue" in the recipe.',
            evidence=Evidence(lines=last_lines(text)),
        )


def unknown(text: str, release: Release) -> RecipeError:
    """Return the error for a question that the catalogue does not have for this release, with the lines to add."""
    question = text[text.rstrip("\n").rfind("\n") + 1 :]
    yes_no = bool(re.search(r"\[y/n\]", question, re.IGNORECASE))
    known = catalogue.matching(text, catalogue.everything())
    variable = known.variable if known else _guess(question)
    entry = [
        "[[prompt]]",
        f'variable = "{variable}"',
        f"question = {_toml(_as_pattern(question))}",
        *(['kind = "yes-no"'] if yes_no else []),
        f'since = "{release}"',
        f'until = "{release}"',
    ]
    answer = ["[configure.answers]", _answer_line(variable, yes_no=yes_no)]
    return RecipeError(
        f"The catalogue does not know what TensorFlow {release} asks: {question.strip()}",
        remedy=f"Add to {catalogue.FILE.name}:\n{_indented(entry)}\nand to the recipe, with your answer:\n{_indented(answer)}",
        evidence=Evidence(lines=last_lines(text)),
    )


def missing(prompts: list[Prompt], text: str = "") -> RecipeError:
    """Return the error for questions that the recipe does not answer, with the lines to add."""
    variables = [prompt.variable for prompt in prompts]
    answers = [
        "[configure.answers]",
        *(_answer_line(prompt.variable, yes_no=prompt.yes_no) for prompt in prompts),
    ]
    host = (
        '\nThe places of CUDA and cuDNN belong into the host file: cuda = "/usr/local/cuda"'
        if _CUDA_PATHS & set(variables)
        else ""
    )
    return RecipeError(
        f"The recipe does not answer what ./configure asks for: {', '.join(variables)}",
        remedy=f"Add to the recipe, with your answers:\n{_indented(answers)}{host}",
        evidence=Evidence(lines=last_lines(text)),
    )


_CUDA_PATHS = {"CUDA_TOOLKIT_PATH", "CUDNN_INSTALL_PATH", "TF_CUDA_PATHS"}


def _guess(question: str) -> str:
    """Guess the variable from the way that TensorFlow names most of them."""
    item = re.search(r"TensorFlow with (.+?) support", question)
    return (
        "TF_NEED_" + re.sub(r"\W+", "_", item[1]).upper()
        if item
        else "THE_VARIABLE_THAT_CONFIGURE_READS"
    )


def _as_pattern(question: str) -> str:
    """Return a regular expression for a question, whatever default it offers."""
    plain = re.sub(r"[.?()\[\]*+|{}^$\\]", r"\\\g<0>", question).replace("\n", r"\n")
    return re.sub(r"(\\\[Default is:? ).*(\\\])", r"\1[^\\n]*\2", plain)


def _toml(text: str) -> str:
    return json.dumps(text) if "'" in text else f"'{text}'"


def _answer_line(variable: str, *, yes_no: bool) -> str:
    return f"{variable} = false" if yes_no else f'{variable} = ""'


def _indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)
