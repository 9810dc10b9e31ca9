"""The part of a log that shows what failed: the failed action, its command, the first error with its context."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tfwright.tools.bazel import output

_ACTION = re.compile(r"ERROR: ")
_COMMAND = re.compile(r"^ +\(cd .*?\)$", re.MULTILINE | re.DOTALL)
_BEFORE, _AFTER = 6, 9
"""Lines of context around an error."""
_MOST = 60
"""Lines that belong to one failed action: its command, and what it printed."""
_WIDTH = 400
"""Longer lines are shown in part; the report has a command whole."""


@dataclass(frozen=True)
class Excerpt:
    """The first error of a log."""

    line: int
    """Number of the line, from 1, that is the first to complain."""
    what: str
    """What failed, in one line: Bazel's action where there is one, else the complaint."""
    where: str
    """The BUILD file and line, where Bazel names them."""
    command: str
    """The command of the failed action, if the log has it."""
    lines: tuple[str, ...]
    last: int
    """Number of the last line that belongs to this error."""


def around(text: Sequence[str], index: int, number: int) -> Excerpt:
    """Return what belongs to the complaint at `text[index]`, which is line `number` of the log.

    Bazel names the action, then prints what it said; nvcc's wrapper and old Bazels do it the other way round.
    """
    action = next((at for at in range(index, len(text)) if _ACTION.match(text[at])), None)
    fault = output.first_fault(text[action:]) if action is not None else None
    if action is None or fault is None:
        end = _complaint(text, index)
        shown = text[max(0, end - _BEFORE) : end + _AFTER]
        return Excerpt(
            number, _short(text[end]), "", "", _shown(shown), number + end - index + _AFTER
        )
    command = _COMMAND.search("\n".join(text[action : action + _MOST]))
    own = (
        fault.lines if action == index and fault.lines else text[max(0, index - 2) : index + _AFTER]
    )
    following = (
        at
        for at in range(action + 1, action + _MOST)
        if at >= len(text) or output.FAILED_ACTION.match(text[at])
    )
    last = number + next(following, action + _MOST) - 1 - index
    return Excerpt(
        number,
        _short(fault.what),
        fault.where,
        command[0].strip() if command else "",
        _shown(own),
        last,
    )


def _complaint(text: Sequence[str], index: int) -> int:
    """Return where the complaint stands: a traceback of Python ends with it."""
    if not text[index].startswith("Traceback "):
        return index
    return next(
        (at for at in range(index + 1, len(text)) if text[at] and not text[at].startswith(" ")),
        index,
    )


def _shown(lines: Sequence[str]) -> tuple[str, ...]:
    """Return lines as they can be shown, without the empty ones at both ends."""
    return tuple("\n".join(map(_short, lines)).strip("\n").split("\n"))


def _short(line: str) -> str:
    """Return a line as it can be shown: of bounded length, without control characters."""
    printable = "".join(
        letter if letter.isprintable() or letter == "\t" else "?" for letter in line[:_WIDTH]
    )
    return printable + (" …" if len(line) > _WIDTH else "")
