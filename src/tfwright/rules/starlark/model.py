"""What is known of Starlark texts: modules, scopes, values, and why a value is not known."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MOST_NAMES = 2_000
"""Names that one scope may bind: each binding copies all of them."""


class UnknownError(ValueError):
    """Only running the text would tell this value."""


class GivenError(UnknownError):
    """The value is a parameter of a function that has no caller."""


class MissingError(UnknownError):
    """The file that a ``load`` names is not there, or not readable."""


class ExhaustedError(Exception):
    """The texts ask for more work than any honest tree does."""


@dataclass(frozen=True, eq=False)
class Module:
    """A file that was parsed."""

    path: str
    body: Sequence[ast.stmt]


@dataclass(frozen=True, eq=False)
class Scope:
    """What is known at one place of a module."""

    module: Module
    names: Mapping[str, object] = field(default_factory=dict)

    def bind(self, **things: object) -> "Scope":
        """Return this scope with names bound or replaced."""
        if len(self.names) > MOST_NAMES:
            raise ExhaustedError(f"{self.module.path} binds more than {MOST_NAMES} names")
        return Scope(self.module, {**self.names, **things})


@dataclass(frozen=True, eq=False)
class Later:
    """A value that is worked out only if something needs it."""

    node: ast.expr
    scope: Scope


@dataclass(frozen=True, eq=False)
class Either:
    """One of several values; which, only running would tell."""

    things: tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Unset:
    """A name whose value cannot be known."""

    fault: UnknownError


@dataclass(frozen=True)
class Function:
    """A function of the texts."""

    node: ast.FunctionDef
    module: Module


@dataclass(frozen=True)
class Rule:
    """What ``repository_rule`` gives: its code, and the names of its attributes."""

    implementation: object
    attributes: frozenset[str]


@dataclass(frozen=True)
class External:
    """A symbol that another repository defines."""

    repository: str
    file: str
    symbol: str


@dataclass(frozen=True)
class Arguments:
    """What a call passes."""

    positional: tuple[object, ...]
    named: Mapping[str, object]
