"""Starlark's statements as Python's own parser reads them: what each binds, loads, evaluates."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from tfwright.rules.starlark.model import UnknownError, Unset

LONGEST_FILE = 1_000_000
"""Characters of a file that is still parsed; the longest of TensorFlow's has 85,000."""
LONGEST_LABEL = 1_000
"""Characters of a label that is still read."""
_LABEL = (
    r"(?:@(?P<repository>[\w.-]*))?(?P<root>//)?"
    r"(?P<package>[\w./+-]*)(?::(?P<name>[\w./+-]+))?"
)


def parse(path: str, texts: Mapping[str, str]) -> Sequence[ast.stmt]:
    """Parse one text. Raises UnknownError if it cannot be read."""
    if path not in texts:
        raise UnknownError(f"the file {path} is missing")
    if len(texts[path]) > LONGEST_FILE:
        raise UnknownError(f"has more than {LONGEST_FILE} characters")
    try:
        return ast.parse(texts[path]).body
    except SyntaxError as fault:
        raise UnknownError(
            f"is not readable as Starlark: line {fault.lineno}: {fault.msg}"
        ) from fault
    except (ValueError, RecursionError, MemoryError) as fault:
        # Python's parser raises these for NUL bytes and for brackets that are nested too deeply.
        message = f"is not readable as Starlark: {str(fault) or 'nested too deeply'}"
        raise UnknownError(message) from fault


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


def labels(body: Sequence[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Yield the line and the label of each ``load`` of a file."""
    for statement in body:
        match statement:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Name(id="load"), args=[ast.Constant(value=str() as label), *_]
                )
            ):
                yield statement.lineno, label


def assigned(target: ast.expr, thing: object) -> dict[str, object]:
    """Return the names that an assignment binds; where it takes a value apart, they are unknown."""
    match target:
        case ast.Name():
            return {target.id: thing}
        case ast.Tuple() | ast.List():
            unset = Unset(UnknownError("is a part of a value"))
            return {node.id: unset for node in ast.walk(target) if isinstance(node, ast.Name)}
    return {}


def defaults(given: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters that have a default, with it."""
    names = [parameter.arg for parameter in (*given.posonlyargs, *given.args)]
    # Python keeps the defaults of the last parameters only, without gaps.
    first = len(names) - len(given.defaults)
    yield from zip(names[first:], given.defaults, strict=True)
    for parameter, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if default:
            yield parameter.arg, default


def located(label: str, seen_from: str) -> tuple[str | None, str]:
    """Return repository (None for the same) and path of a label: ``@repo//package:file.bzl``."""
    # The pattern takes quadratic time for text that is not a label.
    found = re.fullmatch(_LABEL, label) if len(label) <= LONGEST_LABEL else None
    # A label never names a parent directory: Bazel refuses it, and it would lead out of the tree.
    if not found or ".." in label:
        raise UnknownError("loads a file whose label is not readable")
    folder = found["package"] if found["root"] else seen_from.rpartition("/")[0]
    name = found["name"] or found["package"].rpartition("/")[2] + ".bzl"
    return found["repository"], f"{folder}/{name}" if folder else name
