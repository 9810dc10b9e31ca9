"""The prompt catalogue: which version asks what, in which words, for which variable."""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from tfwright.documents.names import Line
from tfwright.documents.recipe import PromptTable, Variable
from tfwright.documents.release import ExactRelease
from tfwright.documents.toml import Table, load

Answer = bool | str
"""Yes or no, or a text."""
Answers = Mapping[str, Answer]
"""By TensorFlow's variables."""


_PLAIN_FORMS = (
    # What may be missing is left out, and the first of several stands for all.
    (r"(?<!\\)\([^()]*\)\?", ""),
    (r"(?<!\\)\(([^()|]*)[^()]*\)", r"\1"),
    # [Uu] is U; of [^\n]* and [\d.]+ nothing is known.
    (r"\[(\w)\w*\]", r"\1"),
    (r"\[[^\]]*\][*+] ?", ""),
    (r"(?<!\\)\?", ""),
    # Last, since a backslash before a bracket says that it is meant as such.
    (r"\\(.)", r"\1"),
)
"""How each form of a question's regular expression reads as plain text."""


class Prompt(Table):
    """One question, or one variable that ./configure reads without asking."""

    variable: Variable
    question: str = ""
    """Regular expression of the whole question."""
    support: Line = ""
    """Short for the question whether to build TensorFlow with this support."""
    kind: Literal["yes-no", "text", ""] = ""
    takes: Literal["any", "version", "capabilities", "flags", "word"] = "any"
    """What a text must look like."""
    yes: Line = "y"
    no: Line = "n"
    since: Line = "0.0"
    until: Line = "99.0"
    fork: Line = ""
    system: Literal["Linux", "Darwin", "any"] = "any"
    when: Line = ""
    optional: bool = False
    empty: bool = False
    """An empty text is an answer of its own, not a request for whatever the default may be."""
    feature: Line = ""
    environment: bool = False
    presence: bool = False
    """./configure asks only whether the variable is there, so a no is not exported."""
    preset: bool = False
    """./configure asks only if the value in the environment does not work, so tfwright exports it
    as well."""
    stated: bool = False
    """./configure finds this out on the host; the recipe states it because the file names it."""

    @property
    def yes_no(self) -> bool:
        """Whether the answer is yes or no."""
        return self.kind == "yes-no" or (not self.kind and bool(self.support))

    @property
    def asked(self) -> bool:
        """Whether ./configure asks a question for it."""
        return not self.environment and not self.stated

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What matches if the question stands at the very end of a text."""
        # bash's `read -p` has no colon before 1.4; both spellings end in one space.
        short = (
            rf"Do you wish to build TensorFlow with {re.escape(self.support)} support\? "
            r"\[(Y/n|y/N)\]:? "
        )
        # At the very end only: a warning above the next question may repeat the words
        # of the last one.
        return re.compile(rf"(?:{self.question or short})\Z")

    @property
    def wording(self) -> str:
        """The question for a person, without its default; the variable if it has no text."""
        if self.support:
            return f"Do you wish to build TensorFlow with {self.support} support?"
        # What the question's regular expression matches, up to its default.
        text = self.question.partition(r"\[")[0].replace(r"\n", " ")
        for form, plain in _PLAIN_FORMS:
            text = re.sub(form, plain, text)
        return text.strip() or self.variable

    def belongs_to(self, version: ExactRelease, system: str) -> bool:
        """Say whether a version has this prompt on a system, as ``uname -s`` names it."""
        in_fork = version.fork.startswith(self.fork)
        fits = in_fork and self.system in {"any", system}
        return fits and version.is_within(self.since, self.until)

    def applies(self, answers: Answers) -> bool:
        """Say whether it is asked, given the other answers; one without an answer counts as no."""
        if not self.when:
            return True
        # "or" binds weaker than "and"; the catalogue needs no brackets.
        alternatives = [part.split(" and ") for part in self.when.split(" or ")]
        return any(
            all(
                bool(answers.get(term.removeprefix("not "))) != term.startswith("not ")
                for term in terms
            )
            for terms in alternatives
        )

    def typed_line(self, answer: Answer) -> str:
        """Return the line that a person would type."""
        if isinstance(answer, str):
            return answer
        return self.yes if answer else self.no


def from_recipe(table: PromptTable) -> Prompt:
    """Return a recipe's own question in the form of the catalogue's."""
    # Recipes write plain text: a regular expression of a stranger could take for ever to match.
    parts = [re.escape(part) for part in table.question.split("*")]
    return Prompt(
        variable=table.variable,
        question=r"[^\n]*".join(parts),
        kind=table.kind,
        yes=table.yes,
        no=table.no,
        when=table.when,
        optional=table.optional,
        empty=True,
        environment=table.environment,
    )


FILE = Path(__file__).with_name("prompts.toml")
LONGEST_QUESTION = 8192
"""Characters of a text, from its end, that a question can take: the longest holds a long path."""


class Afterwards(Table):
    """What became of a feature in versions that no longer ask for it."""

    variable: Variable
    since: Line
    until: Line = "99.0"
    says: Line
    now: Variable | None = None
    """The variable of the question that asks for it instead."""


class Catalogue(Table):
    """All prompts of all releases."""

    prompt: tuple[Prompt, ...]
    afterwards: tuple[Afterwards, ...]


@lru_cache
def _read_catalogue() -> Catalogue:
    return load(FILE, Catalogue)


def all_prompts() -> tuple[Prompt, ...]:
    """Return the whole catalogue."""
    return _read_catalogue().prompt


def afterwards(variable: str, version: ExactRelease) -> Afterwards | None:
    """Return what became of a feature whose question a version does not ask; None if unknown."""
    for entry in _read_catalogue().afterwards:
        if entry.variable == variable and version.is_within(entry.since, entry.until):
            return entry
    return None


def prompts(version: ExactRelease, system: str) -> tuple[Prompt, ...]:
    """Return what a version may ask, or read from its environment, on a system."""
    return tuple(prompt for prompt in all_prompts() if prompt.belongs_to(version, system))


def prompts_of_variable(variable: str) -> list[Prompt]:
    """Return all entries for a variable, of any version."""
    return [prompt for prompt in all_prompts() if prompt.variable == variable]


def match_question(text: str, candidates: Iterable[Prompt]) -> Prompt | None:
    """Return the prompt whose question is at the end of `text`."""
    # Only the end matters: a question is what ./configure printed last.
    end = text[-LONGEST_QUESTION:]
    for prompt in candidates:
        # Some entries are variables that ./configure reads without asking.
        if prompt.asked and prompt.pattern.search(end):
            return prompt
    return None
