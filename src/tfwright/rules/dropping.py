"""When a patch has to go: the ``Drop when:`` field of its header, held against a recipe.

The field lists conditions, any of which is enough, in short forms or in the sentences that say the
same::

    release >= 1.9                    the release is 1.9 or later
    upstream 8f3c0d1e                 the pinned commit has this commit in its history
    pins grpc >= 1.22                 the release pins gRPC 1.22 or later
    no substitute nasm                the recipe builds from the pinned archive of NASM again
    answer TF_NEED_S3                 the recipe sets TF_NEED_S3
    glibc <= 2.29                     the build host has glibc 2.29 or older
    python < 3                        the wheel is for Python 2

Whatever else stands there is for a person to judge.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tfwright.documents.recipe import Recipe, SourceTable
from tfwright.rules.model import Rules
from tfwright.tools.git.repository import GitRepository

Answer = Literal["due", "not due", "unknown"]
"""Whether a patch has to go. ``unknown``: a person has to judge, or a fact is missing."""
COMPARISONS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "or later": operator.ge,
    "or newer": operator.ge,
    "or older": operator.le,
    "or earlier": operator.le,
}
_UPSTREAM_FORM = r"upstream (?P<commit>[0-9a-f]{7,40})$"
_UPSTREAM = re.compile(f"(?:the )?{_UPSTREAM_FORM}")
_VERSION = r"(?P<version>[0-9]{1,9}(?:\.[0-9]{1,9}){0,3})"
_COMPARED = rf"(?P<how>>=|<=|==|>|<) ?{_VERSION}"
_SPOKEN = rf"{_VERSION} (?P<how>or later|or newer|or older|or earlier)"


@dataclass(frozen=True)
class DropFacts:
    """What is known of a recipe and its tree; None for what is not known where this is asked."""

    source: SourceTable
    recipe: Recipe | None = None
    """The whole recipe; the stages that apply patches know its [source] only."""
    rules: Rules | None = None
    """The archives that the tree pins."""
    repository: Path | None = None
    """A repository with the pinned commit and its history."""

    @classmethod
    def of(
        cls, recipe: Recipe, rules: Rules | None = None, repository: Path | None = None
    ) -> "DropFacts":
        """Return the facts of a whole recipe."""
        return cls(recipe.source, recipe, rules, repository)


@dataclass(frozen=True)
class DropVerdict:
    """Whether a patch has to go, and the condition that decides it."""

    answer: Answer
    condition: str
    """The one that holds, or else the whole field."""


def judge(drop_when: str, facts: DropFacts) -> DropVerdict:
    """Hold a patch's ``Drop when:`` against what is known; one condition that holds is enough."""
    answers: list[bool | None] = []
    for condition in _conditions(drop_when):
        checks = ((form.match(condition), check) for form, check in _FORMS)
        answer = next((check(found, facts) for found, check in checks if found), None)
        if answer:
            return DropVerdict("due", condition)
        answers.append(answer)
    # One that cannot be judged may be the one that holds.
    answer_of_all: Answer = "unknown" if None in answers else "not due"
    return DropVerdict(answer_of_all, drop_when)


def unknown_upstream(drop_when: str, facts: DropFacts) -> str:
    """Return a condition about an upstream commit that the facts do not decide; empty if none."""
    for condition in _conditions(drop_when):
        found = _UPSTREAM.match(condition)
        if found and _check_upstream(found, facts) is None:
            return condition
    return ""


def misspelt_condition(drop_when: str) -> str:
    """Return a condition that begins like a short form and cannot be read; empty if there is none.

    A sentence is not one: it is meant for people.
    """
    for condition in _conditions(drop_when):
        # "release => 1.9" would otherwise count as a sentence, and the patch would stay for ever.
        begins = re.match(
            r"(release|glibc|python|pins \S+) *[<>=!~]|(upstream|pins|answer) \S*$", condition
        )
        if begins and not any(form.match(condition) for form, _ in _FORMS):
            return condition
    return ""


def _conditions(drop_when: str) -> Iterator[str]:
    """Yield the alternatives; the comma tells them from "or later" inside of one."""
    for condition in re.split(r",? or (?!later|newer|older|earlier)|; ", drop_when):
        yield condition.strip().rstrip(".")


def _check_release(found: re.Match[str], facts: DropFacts) -> bool | None:
    source = facts.source
    if source.interface != "tensorflow":
        return None
    # "1.9" is a line of releases, "2.4.1" one of its patch levels.
    return _compare_version(found, source.exact.numbers)


def _check_upstream(found: re.Match[str], facts: DropFacts) -> bool | None:
    if facts.repository is None:
        return None
    return GitRepository(facts.repository).is_ancestor(found["commit"], facts.source.commit)


def _check_pins(found: re.Match[str], facts: DropFacts) -> bool | None:
    if facts.rules is None:
        return None
    name = found["name"].lower()
    for rule in facts.rules.repositories:
        # The directory in the archive names the version: grpc-1.13.0. A commit's has none.
        version = re.search(r"-v?(\d+(?:[._]\d+)+)(?=/|$)", rule.strip_prefix)
        if rule.name.removesuffix("_archive") == name and version:
            return _compare_version(found, _numbers(version[1].replace("_", ".")))
    return None


def _check_python(found: re.Match[str], facts: DropFacts) -> bool | None:
    if facts.recipe is None or facts.recipe.host.python == "any":
        return None
    wanted = _numbers(found["version"])
    return COMPARISONS[found["how"]](_numbers(facts.recipe.host.python), wanted)


def _compare_version(found: re.Match[str], has: tuple[int, ...]) -> bool:
    """Compare a version with that of the condition, by as many numbers as this names."""
    wanted = _numbers(found["version"])
    return COMPARISONS[found["how"]](has[: len(wanted)], wanted)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


Check = Callable[[re.Match[str], DropFacts], bool | None]


def _recipe_check(check: Callable[[Recipe, str], bool]) -> Check:
    """Make a check of the whole recipe and the name in the condition."""
    return lambda found, facts: (
        None if facts.recipe is None else check(facts.recipe, found.groupdict().get("name") or "")
    )


_no_substitute = _recipe_check(
    # Rules are named zlib_archive or org_sqlite, where people say zlib and SQLite.
    lambda recipe, name: (
        not any(name.lower() in {rule, *rule.split("_")} for rule in recipe.fetch.substitutes)
    )
)
_answered = _recipe_check(lambda recipe, name: recipe.configure.agrees_to(name))
_SPELLINGS: Mapping[str, Check] = {
    rf"release {_COMPARED}$": _check_release,
    # A sentence may go on: "the release is 1.13 or later, where NCCL can be left out".
    rf"release is {_SPOKEN}\b": _check_release,
    _UPSTREAM_FORM: _check_upstream,
    rf"pins (?P<name>[\w-]+) {_COMPARED}$": _check_pins,
    rf"release pins (?P<name>[\w-]+) {_SPOKEN}\b": _check_pins,
    r"no substitute (?P<name>[\w-]+)$": _no_substitute,
    r"recipe builds from the pinned archive of (?P<name>[\w-]+) again": _no_substitute,
    r"answer (?P<name>[A-Z][A-Z0-9_]+)$": _answered,
    r"recipe sets (?P<name>[A-Z][A-Z0-9_]+)": _answered,
    # A recipe is for every host, and this one's glibc decides nothing: that is for a person.
    rf"glibc {_COMPARED}$": lambda *_: None,
    rf"build host has glibc {_SPOKEN}\b": lambda *_: None,
    rf"python {_COMPARED}$": _check_python,
    r"wheel is for Python 2$": _recipe_check(lambda recipe, _: recipe.host.python.startswith("2.")),
    r"wheel is for macOS": _recipe_check(lambda recipe, _: recipe.host.system == "Darwin"),
}
_FORMS = [(re.compile(f"(?:the )?{spelling}"), check) for spelling, check in _SPELLINGS.items()]
