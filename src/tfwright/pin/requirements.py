"""The packages that a recipe names without a version, found in its text."""

from collections.abc import Mapping
from typing import Any

from tfwright.documents.names import EXACT_PIN

LISTS = (("host", "requirements"), ("verify", "requirements"))
"""The lists whose packages pip resolves, as table and key."""


def left_open(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the lines of a document that pin no version, by the key of their list."""
    found = {}
    for table, key in LISTS:
        lines = _lines(values, table, key)
        found[f"{table}.{key}"] = [line for line in lines if _is_open(line)]
    return found


def without_open(values: dict[str, Any]) -> None:
    """Take those lines out, so that all else of a recipe is checked."""
    for table, key in LISTS:
        lines = _lines(values, table, key)
        if any(map(_is_open, lines)):
            kept = [line for line in lines if not _is_open(line)]
            values[table][key] = kept


def _lines(values: Mapping[str, Any], table: str, key: str) -> list[Any]:
    # The document was not checked yet: anything may stand anywhere.
    given = values.get(table)
    lines = given.get(key) if isinstance(given, Mapping) else None
    return lines if isinstance(lines, list) else []


def _is_open(line: object) -> bool:
    # Anything else than a text is a fault, which reading the recipe describes.
    return isinstance(line, str) and not EXACT_PIN.fullmatch(line)
