"""The prompt catalogue: which version asks what, in which words, for which variable."""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from tfwright.configure.prompt import Prompt
from tfwright.documents.names import Line
from tfwright.documents.recipe import Variable
from tfwright.documents.release import ExactRelease, first_of, last_of
from tfwright.documents.toml import Table, load

FILE = Path(__file__).with_name("prompts.toml")
LONGEST_QUESTION = 8192
"""Characters of a text, from its end, that a question can take: the longest holds a long path."""


class Afterwards(Table):
    """What became of a feature in versions that no longer ask for it."""

    variable: Variable
    since: Line
    until: Line = "99.0"
    says: Line


class Catalogue(Table):
    """All prompts of all releases."""

    prompt: tuple[Prompt, ...]
    afterwards: tuple[Afterwards, ...]


@lru_cache
def _read() -> Catalogue:
    return load(FILE, Catalogue)


def everything() -> tuple[Prompt, ...]:
    """Return the whole catalogue."""
    return _read().prompt


def afterwards(variable: str, version: ExactRelease) -> str:
    """Return what became of a feature whose question a version does not ask; empty if unknown."""
    for entry in _read().afterwards:
        reached = first_of(entry.since) <= version.rank <= last_of(entry.until)
        if entry.variable == variable and reached:
            return entry.says
    return ""


def prompts(version: ExactRelease, system: str) -> tuple[Prompt, ...]:
    """Return what a version may ask, or read from its environment, on a system."""
    return tuple(prompt for prompt in everything() if prompt.belongs_to(version, system))


def of_variable(variable: str) -> list[Prompt]:
    """Return all entries for a variable, of any version."""
    return [prompt for prompt in everything() if prompt.variable == variable]


def matching(text: str, candidates: Iterable[Prompt]) -> Prompt | None:
    """Return the prompt whose question is at the end of `text`."""
    # Only the end matters: a question is what ./configure printed last.
    end = text[-LONGEST_QUESTION:]
    for prompt in candidates:
        # Some entries are variables that ./configure reads without asking.
        if prompt.asked and prompt.pattern.search(end):
            return prompt
    return None
