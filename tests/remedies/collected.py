"""Every remedy that the package can print, read from its source."""

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents.recipe import ROOT

PACKAGE = ROOT / "src/tfwright"
NAMED = re.compile(r"remed", re.IGNORECASE)
"""What variables and functions that hold remedies have in their names."""
OTHERS = {"ACCESS", "BY_PATCH", "FORGED", "PLACE", "REDO", "ROOM", "UNSTARTED", "UNUSABLE"}
"""Constants that are remedies by another name."""
BLANK = "…"
"""What stands for the parts of a text that are known only when it is printed."""
COMMAND = re.compile(r"'?\binvoke ((?:--)?[a-z][a-z-]*)((?: +(?:--[a-z][a-z-]*|[\w./…=-]+))*)")


@dataclass(frozen=True)
class CollectedRemedy:
    """A text, and where it is in the source."""

    file: str
    line: int
    text: str

    @property
    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the commands of tfwright that it names, each with its options."""
        for found in COMMAND.finditer(self.text):
            yield found[1], re.findall(r"--[a-z][a-z-]*", found[2])


@functools.cache
def collected() -> list[CollectedRemedy]:
    """Return all remedies, each once, in the order of the source."""
    found: dict[CollectedRemedy, None] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            for text in _texts(node):
                remedy = CollectedRemedy(_name(path), text.lineno, _said(text))
                found[remedy] = None
    return list(found)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _texts(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the texts in a node that are remedies."""
    match node:
        case ast.Call(keywords=keywords):
            for keyword in keywords:
                if keyword.arg and NAMED.search(keyword.arg):
                    yield from _literals(keyword.value)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            if NAMED.search(name) or name in OTHERS:
                yield from _literals(value)
        case ast.FunctionDef(name=name, body=body) if NAMED.search(name):
            for inner in body:
                for part in ast.walk(inner):
                    if isinstance(part, ast.Return) and part.value:
                        yield from _literals(part.value)


def _literals(value: ast.expr) -> Iterator[ast.expr]:
    """Yield the texts of an expression; of a choice, both."""
    match value:
        case ast.Constant(value=str()) | ast.JoinedStr():
            yield value
        case ast.IfExp(body=body, orelse=orelse):
            yield from _literals(body)
            yield from _literals(orelse)
        case ast.BinOp(left=left, right=right):
            yield from _literals(left)
            yield from _literals(right)
        case ast.Dict(values=values):
            for each in values:
                yield from _literals(each)
        case ast.Call(args=args):
            # What puts several texts together.
            for argument in args:
                yield from _literals(argument)


def _said(text: ast.expr) -> str:
    if isinstance(text, ast.Constant):
        return str(text.value)
    return "".join(map(_part, text.values)) if isinstance(text, ast.JoinedStr) else ""


def _part(part: ast.expr) -> str:
    match part:
        case ast.Constant(value=value):
            return str(value)
        # A command that gets its --recipe later; see `errors.invoke`.
        case ast.FormattedValue(value=ast.Call(func=ast.Name(id="invoke"), args=[command])):
            return f"invoke {_said(command)} --recipe {BLANK}"
    return BLANK
