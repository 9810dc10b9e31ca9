"""What is known of Starlark: its statements as Python's parser reads them, its values, its texts.

Texts are untrusted: what could ask for gigabytes (long repetition, a width in a format) is unknown.
"""

import ast
import re
import string
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

MOST_NAMES = 2_000
"""Names that one scope may bind: each binding copies all of them."""
LONGEST_FILE = 1_000_000
"""Characters of a file that is still parsed; the longest of TensorFlow's has 85,000."""
LONGEST_LABEL = 1_000
"""Characters of a label that is still read."""
_LOAD = re.compile(r"^load\(([^()]*)\)", re.MULTILINE)
_LABEL = (
    r"(?:@@?(?P<repository>[\w.-]*))?(?P<root>//)?"
    r"(?P<package>[\w./+-]*)(?::(?P<name>[\w./+-]+))?"
)
LONGEST = 65_536
"""Characters of a text and items of a list that are still put together."""
LARGEST = 10**18
"""The first integer that is too large to be put into a text."""


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


def parse(path: str, texts: Mapping[str, str]) -> Sequence[ast.stmt]:
    """Parse one text. Raises UnknownError if it cannot be read."""
    if path not in texts:
        raise UnknownError(f"the file {path} is missing")
    if len(texts[path]) > LONGEST_FILE:
        raise UnknownError(f"has more than {LONGEST_FILE} characters")
    try:
        with suppress(SyntaxError):
            return ast.parse(texts[path]).body
        return ast.parse(_LOAD.sub(_renamed_last, texts[path])).body
    except SyntaxError as fault:
        raise UnknownError(
            f"is not readable as Starlark: line {fault.lineno}: {fault.msg}"
        ) from fault
    except (ValueError, RecursionError, MemoryError) as fault:
        # Python's parser raises these for NUL bytes and for brackets that are nested too deeply.
        message = f"is not readable as Starlark: {str(fault) or 'nested too deeply'}"
        raise UnknownError(message) from fault


def _renamed_last(load: re.Match[str]) -> str:
    """Put what a ``load`` renames last: Starlark lets plain symbols follow, Python does not."""
    symbols = load[1].split(",")
    kept = [symbol for symbol in symbols if symbol.strip()]
    # No line may get lost: the others keep their numbers.
    lines = "\n" * sum(symbol.count("\n") for symbol in symbols if not symbol.strip())
    return f"load({','.join(sorted(kept, key=lambda symbol: '=' in symbol))}{lines})"


def expression_of(statement: ast.stmt) -> ast.expr | None:
    """Return the expression that a statement evaluates; None if it has none of interest."""
    match statement:
        case ast.If(test=expression) | ast.For(iter=expression):
            return expression
        case ast.Expr(value=ast.Call(func=ast.Name(id="load"))):
            # A `load` only binds names; read as a call, it would look like an unknown macro.
            return None
        case ast.Expr(value=expression) | ast.Return(value=ast.expr() as expression):
            return expression
        case ast.Assign(value=expression):
            return expression
        case ast.AugAssign(target=ast.Name(), value=expression):
            return expression
    return None


def loaded_labels(body: Sequence[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Yield the line and the label of each ``load`` of a file."""
    for statement in body:
        match statement:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Name(id="load"), args=[ast.Constant(value=str() as label), *_]
                )
            ):
                yield statement.lineno, label


def bindings(target: ast.expr, thing: object) -> dict[str, object]:
    """Return the names that an assignment binds; the parts of an unknown value are unknown."""
    match target:
        case ast.Name():
            return {target.id: thing}
        case ast.Tuple(elts=parts) if isinstance(thing, list) and len(parts) == len(thing):
            pairs = zip(parts, thing, strict=True)
            return {name: part for one, item in pairs for name, part in bindings(one, item).items()}
        case ast.Tuple() | ast.List():
            unset = Unset(UnknownError("is a part of a value"))
            return {node.id: unset for node in ast.walk(target) if isinstance(node, ast.Name)}
    return {}


def defaults(parameters: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters that have a default, with it."""
    names = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
    # Python keeps the defaults of the last parameters only, without gaps.
    first = len(names) - len(parameters.defaults)
    yield from zip(names[first:], parameters.defaults, strict=True)
    for parameter, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
        if default:
            yield parameter.arg, default


def locate(label: str, seen_from: str) -> tuple[str | None, str]:
    """Return repository (None for the same) and path of a label: ``@repo//package:file.bzl``."""
    # The pattern takes quadratic time for text that is not a label.
    found = re.fullmatch(_LABEL, label) if len(label) <= LONGEST_LABEL else None
    # A label never names a parent directory: Bazel refuses it, and it would lead out of the tree.
    if not found or ".." in label:
        raise UnknownError("loads a file whose label is not readable")
    package, name = found["package"], found["name"]
    if name is None and package.endswith(".bzl") and not found["root"]:
        # ``load("file.bzl", …)``: without a colon, too, it is a file of the same package.
        name = package
    folder = package if found["root"] else seen_from.rpartition("/")[0]
    name = name or package.rpartition("/")[2] + ".bzl"
    return found["repository"], f"{folder}/{name}" if folder else name


def add(left: object, right: object) -> str | list[object]:
    """Add two texts or two lists, as Starlark does."""
    if isinstance(left, str) and isinstance(right, str):
        return _check_length(left + right)
    if isinstance(left, list) and isinstance(right, list) and len(left) + len(right) <= LONGEST:
        return left + right
    raise UnknownError("adds what is neither two texts nor two lists")


def repeat(left: object, right: object) -> str | list[object]:
    """Repeat a text or a list, as Starlark does: the number may stand on either side."""
    thing, times = (right, left) if isinstance(left, int) else (left, right)
    if not (isinstance(thing, str | list) and isinstance(times, int)):
        raise UnknownError("multiplies what is not a text or a list by a number")
    if len(thing) * times > LONGEST:
        raise UnknownError(f"repeats to more than {LONGEST} characters or items")
    # Python itself refuses a number of more than 64 bits.
    return thing * max(times, 0) if thing else thing


def fill(text: object, values: object) -> str:
    """Fill the places of a ``%`` text; only plain ``%s`` and ``%d`` are known."""
    operands = list(values) if isinstance(values, list) else [values]
    # The split keeps each letter after a `%`: literals are at even places, marks at odd ones.
    parts = re.split(r"%(.)", text) if isinstance(text, str) else []
    marks = parts[1::2]
    known = bool(parts) and {"s", "d", "%"}.issuperset(marks)
    if not known or len(operands) != sum(mark != "%" for mark in marks):
        raise UnknownError("fills a text in a way that is not known")
    parts[1::2] = [mark if mark == "%" else _as_text(operands.pop(0)) for mark in marks]
    return _check_length("".join(parts))


def format_text(text: object, positional: Sequence[object], named: Mapping[str, object]) -> str:
    """Do what ``str.format`` does with plain ``{}``, ``{0}`` and ``{name}``.

    Nothing else is known.
    """
    if not isinstance(text, str):
        raise UnknownError("formats what is not a text")
    values = {**{str(index): value for index, value in enumerate(positional)}, **named}
    made: list[str] = []
    size = position = 0
    try:
        for literal, place, width, conversion in string.Formatter().parse(text):
            made.append(literal)
            if place is None:
                continue
            # A width may ask for gigabytes of blanks, so it is not even tried.
            if width or conversion:
                raise UnknownError("formats with more than plain {name}")
            value = _as_text(values[place or str(position)])
            made.append(value)
            size += len(literal) + len(value)
            # Each place may take the longest text again.
            if size > LONGEST:
                break
            # Only a place without a name, plain `{}`, takes the next positional argument.
            position += not place
    except (ValueError, KeyError) as fault:
        raise UnknownError(f"formats with what is not there: {fault}") from fault
    return _check_length("".join(made))


def _as_text(value: object) -> str:
    """Return a text or a number as a text."""
    if isinstance(value, str) or (isinstance(value, int) and abs(value) < LARGEST):
        return str(value)
    raise UnknownError("puts what is neither text nor number into a text")


def _check_length(text: str) -> str:
    """Insist that a text which was put together is of a sane length."""
    if len(text) > LONGEST:
        raise UnknownError(f"makes a text of more than {LONGEST} characters")
    return text


def parse_python(text: str | bytes) -> ast.Module | None:
    """Return what a program means; None if it cannot be said, as of one for Python 2."""
    try:
        with warnings.catch_warnings():
            # Old sources have invalid escapes, which the parser would print on the user's terminal.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    # NUL bytes, and brackets that are nested too deeply.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
