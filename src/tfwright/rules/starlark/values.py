"""Texts and lists that are put together as Starlark does it, within bounds.

Texts are untrusted: what could ask for gigabytes (repetition, a width in a format) is not known.
"""

import re
import string
from collections.abc import Mapping, Sequence

from tfwright.rules.starlark.model import UnknownError

LONGEST = 65_536
"""Characters of a text and items of a list that are still put together."""
LARGEST = 10**18
"""The first integer that is too large to be put into a text."""


def added(left: object, right: object) -> str | list[object]:
    """Add two texts or two lists, as Starlark does."""
    if isinstance(left, str) and isinstance(right, str):
        return _short(left + right)
    if isinstance(left, list) and isinstance(right, list) and len(left) + len(right) <= LONGEST:
        return left + right
    raise UnknownError("adds what is neither two texts nor two lists")


def filled(text: object, values: object) -> str:
    """Fill the places of a ``%`` text; only plain ``%s`` and ``%d`` are known."""
    given = list(values) if isinstance(values, list) else [values]
    # The split keeps each letter after a `%`: literals are at even places, marks at odd ones.
    parts = re.split(r"%(.)", text) if isinstance(text, str) else []
    marks = parts[1::2]
    known = bool(parts) and {"s", "d", "%"}.issuperset(marks)
    if not known or len(given) != sum(mark != "%" for mark in marks):
        raise UnknownError("fills a text in a way that is not known")
    parts[1::2] = [mark if mark == "%" else _plain(given.pop(0)) for mark in marks]
    return _short("".join(parts))


def formatted(text: object, positional: Sequence[object], named: Mapping[str, object]) -> str:
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
            value = _plain(values[place or str(position)])
            made.append(value)
            size += len(literal) + len(value)
            # Each place may take the longest text again.
            if size > LONGEST:
                break
            # Only a place without a name, plain `{}`, takes the next positional argument.
            position += not place
    except (ValueError, KeyError) as fault:
        raise UnknownError(f"formats with what is not there: {fault}") from fault
    return _short("".join(made))


def _plain(value: object) -> str:
    """Return a text or a number as a text."""
    if isinstance(value, str) or (isinstance(value, int) and abs(value) < LARGEST):
        return str(value)
    raise UnknownError("puts what is neither text nor number into a text")


def _short(text: str) -> str:
    """Insist that a text which was put together is of a sane length."""
    if len(text) > LONGEST:
        raise UnknownError(f"makes a text of more than {LONGEST} characters")
    return text
