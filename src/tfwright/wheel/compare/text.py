"""How two texts of a wheel differ: metadata line by line, Python by what it means."""

import ast
import difflib
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from tfwright.printable import printable
from tfwright.rules.starlark.language import parse_python

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


class TextFinding(NamedTuple):
    """What differs, and the lines that show it."""

    what: str
    lines: tuple[str, ...] = ()


def compare_texts(one: bytes, two: bytes) -> TextFinding | None:
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


def compare_programs(one: bytes, two: bytes) -> TextFinding | None:
    """Compare two Python files; say so where they do the same."""
    found = compare_texts(one, two)
    # None where it cannot be said what a file means, as of Python 2.
    trees = [parse_python(each) if len(each) <= LARGEST_PROGRAM else None for each in (one, two)]
    before, after = trees
    if found is None or before is None or after is None:
        return found
    # A chain of some hundred "elif" is too deep for Python's stack.
    with suppress(RecursionError):
        # Neither comments nor line numbers are in it.
        if ast.dump(before) == ast.dump(after):
            return TextFinding("only comments or white space differ", found.lines)
        for node in (*ast.walk(before), *ast.walk(after)):
            if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
                del node.body[0]
        if ast.dump(before) == ast.dump(after):
            return TextFinding("only docstrings, comments or white space differ", found.lines)
    return found


def _diff(old: Sequence[str], new: Sequence[str], *, exact: bool = False) -> tuple[str, ...]:
    """Return the lines that differ, from the first to the last, with a little around them."""
    # difflib takes time that grows with the square of the length. Leave out what is
    # alike at both ends, and bound what is left.
    start = _common_lines(old, new)
    end = _common_lines(old[start:][::-1], new[start:][::-1])
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


def _common_lines(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines two texts begin with alike."""
    for number, (before, after) in enumerate(zip(old, new, strict=False)):
        if before != after:
            return number
    return min(len(old), len(new))
