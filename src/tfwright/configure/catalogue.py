"""The prompt catalogue: which release asks what, in which words, for which variable."""

import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from tfwright.documents.recipe import Line, Variable
from tfwright.documents.release import Release
from tfwright.documents.toml import Table, load

FILE = Path(__file__).with_name("prompts.toml")

Answer = bool | str
"""Yes or no, or a text."""
Answers = Mapping[str, Answer]
"""By TensorFlow's variables."""


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as fault:
        message = f"not a regular expression: {fault}"
        raise ValueError(message) from fault
    return pattern


class Prompt(Table):
    """One question of ./configure, or one variable that it reads without asking."""

    variable: Variable
    question: Annotated[str, AfterValidator(_compiles)] = ""
    """Regular expression of the whole question."""
    support: Line = ""
    """Short for the question whether to build TensorFlow with this support."""
    kind: Literal["yes-no", "text", ""] = ""
    since: Release
    until: Release = Release(999, 0)
    system: Literal["Linux", "Darwin", "any"] = "any"
    when: Line = ""
    """Condition on other answers: ``TF_A and not TF_B or TF_C``."""
    optional: bool = False
    feature: Line = ""
    environment: bool = False

    @property
    def yes_no(self) -> bool:
        """Whether the answer is y or n."""
        return self.kind == "yes-no" or (not self.kind and bool(self.support))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What matches if the question stands at the very end of a text."""
        # bash's `read -p` has no colon before 1.4; both spellings end in one space.
        short = rf"Do you wish to build TensorFlow with {re.escape(self.support)} support\? \[(Y/n|y/N)\]:? "
        return re.compile(rf"(?:{self.question or short})\Z")

    def belongs_to(self, release: Release, system: str) -> bool:
        """Say whether a release has this prompt on a system, as ``uname -s`` names it."""
        return self.since <= release <= self.until and self.system in {"any", system}

    def applies(self, answers: Answers) -> bool:
        """Say whether it is asked, given the other answers; a variable without an answer counts as no."""
        return not self.when or any(
            all(_holds(term, answers) for term in part.split(" and "))
            for part in self.when.split(" or ")
        )


def _holds(term: str, answers: Answers) -> bool:
    return (
        not answers.get(term.removeprefix("not "))
        if term.startswith("not ")
        else bool(answers.get(term))
    )


class Catalogue(Table):
    """All prompts of all releases."""

    prompt: tuple[Prompt, ...]


@lru_cache
def everything() -> tuple[Prompt, ...]:
    """Return the whole catalogue."""
    return load(FILE, Catalogue).prompt


def prompts(release: Release, system: str) -> tuple[Prompt, ...]:
    """Return what a release may ask, or read from its environment, on a system."""
    return tuple(prompt for prompt in everything() if prompt.belongs_to(release, system))


def matching(text: str, candidates: tuple[Prompt, ...]) -> Prompt | None:
    """Return the prompt whose question stands at the end of `text`."""
    return next(
        (prompt for prompt in candidates if not prompt.environment and prompt.pattern.search(text)),
        None,
    )


def unanswered(release: Release, system: str, answers: Answers) -> list[Prompt]:
    """Return the prompts that must be expected and that `answers` says nothing about."""
    return [
        prompt
        for prompt in prompts(release, system)
        if prompt.variable not in answers
        and not prompt.optional
        and not prompt.environment
        and prompt.applies(answers)
    ]
