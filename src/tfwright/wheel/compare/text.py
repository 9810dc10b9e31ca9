"""How two texts of a wheel differ: metadata line by line, Python by what it means."""

import ast
import difflib
import json
from collections.abc import Sequence
from typing import NamedTuple

from tfwright.printable import printable
from tfwright.rules.starlark.language import parse_python
from tfwright.tools import json_text

CONTEXT = 1
MOST_LINES = 400
"""Lines between the first and the last difference that are compared; more take too long."""
LONGEST = 24
"""Lines of a difference that are shown."""
WIDEST = 160
LARGEST_PROGRAM = 2 * 1024**2
"""Bytes of a Python file that is parsed."""
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
"""What may have a docstring."""
PYC_HEADER = 16
"""Bytes before the code in a .pyc file (PEP 552): magic, flags, the source's time or digest."""


class TextFinding(NamedTuple):
    """What differs, and the lines that show it."""

    what: str
    lines: tuple[str, ...] = ()


def text(one: bytes, two: bytes) -> TextFinding | None:
    """Compare two texts line by line; None if one is not text."""
    try:
        before, after = one.decode(), two.decode()
    except UnicodeDecodeError:
        return None
    # A binary file may be valid UTF-8 by chance.
    if "\0" in before or "\0" in after:
        return None
    if before.split() == after.split():
        return TextFinding(
            "only white space differs",
            _diff(before.splitlines(keepends=True), after.splitlines(keepends=True), exact=True),
        )
    return TextFinding("lines differ", _diff(before.splitlines(), after.splitlines()))


def document(one: bytes, two: bytes) -> TextFinding | None:
    """Compare two JSON documents, however they are laid out."""
    try:
        before, after = _laid_out(one), _laid_out(two)
    except (ValueError, RecursionError):
        return text(one, two)
    if before == after:
        return TextFinding("only its layout differs")
    return text(before, after)


def _laid_out(document: bytes) -> bytes:
    # Keys keep their order: two orders are a difference that a reader may look for.
    return json.dumps(json_text.parsed(document), indent=1).encode()


def program(one: bytes, two: bytes) -> TextFinding | None:
    """Compare two Python files; say so where they do the same."""
    found = text(one, two)
    # None where it cannot be said what a file means, as of Python 2.
    meanings = [parse_python(each) if len(each) <= LARGEST_PROGRAM else None for each in (one, two)]
    if found is None or None in meanings:
        return found
    # The syntax tree has neither comments nor line numbers among its fields.
    if _alike(*meanings):
        return TextFinding("only comments or white space differ", found.lines)
    for tree in meanings:
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
                del node.body[0]
    if _alike(*meanings):
        return TextFinding("only docstrings, comments or white space differ", found.lines)
    return found


def compiled(one: bytes, two: bytes) -> TextFinding:
    """Compare two .pyc files."""
    # The usual case: the header holds the time of the source file.
    if one[PYC_HEADER:] == two[PYC_HEADER:]:
        return TextFinding(
            "only the header differs, which holds the source's time or digest",
            (one[:PYC_HEADER].hex(" "), two[:PYC_HEADER].hex(" ")),
        )
    return TextFinding(
        "the code differs" + ("" if one[:4] == two[:4] else ", and the Python that compiled it")
    )


def _alike(old: object, new: object) -> bool:
    """Say whether two parts of programs do the same.

    It ends at the first difference, as ast.dump does not.
    """
    # No recursion: a chain of some hundred "elif" would be too deep for Python's stack.
    left = [(old, new)]
    while left:
        first, second = left.pop()
        if type(first) is not type(second):
            return False
        if isinstance(first, ast.AST):
            left += [
                (getattr(first, name, None), getattr(second, name, None)) for name in first._fields
            ]
        elif isinstance(first, list) and isinstance(second, list):
            if len(first) != len(second):
                return False
            left += zip(first, second, strict=True)
        elif first != second:
            return False
    return True


def _diff(old: Sequence[str], new: Sequence[str], *, exact: bool = False) -> tuple[str, ...]:
    """Return the lines that differ, from the first to the last, with a little around them."""
    # difflib takes time that grows with the square of the length. Leave out what is
    # alike at both ends, and bound what is left.
    start = _alike_until(old, new)
    end = _alike_until(old[start:][::-1], new[start:][::-1])
    first = max(start - CONTEXT, 0)
    spared = max(end - CONTEXT, 0)
    before = old[first : len(old) - spared][:MOST_LINES]
    after = new[first : len(new) - spared][:MOST_LINES]
    hunks = difflib.unified_diff(before, after, n=CONTEXT, lineterm="")
    lines = [line for line in hunks if not line.startswith(("---", "+++", "@@"))]
    shown = []
    for line in lines[: LONGEST - 1]:
        # With `exact` white space shows, too.
        text = line[0] + repr(line[1:]) if exact else printable(line)
        shown.append(text if len(text) <= WIDEST else text[:WIDEST] + "…")
    if len(lines) >= LONGEST:
        shown.append(f"and {len(lines) - LONGEST + 1:,} more lines")
    return (f"line {start + 1}:", *shown)


def _alike_until(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines two texts begin with alike."""
    for number, (before, after) in enumerate(zip(old, new, strict=False)):
        if before != after:
            return number
    return min(len(old), len(new))
