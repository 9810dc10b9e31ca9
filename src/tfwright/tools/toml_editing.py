"""Changes to a TOML file that people wrote: their comments, order and blank lines stay."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfwright.tools import files


def put_table(path: Path, table: str, values: Mapping[str, object]) -> None:
    """Replace a table, or add it at the end; nothing else in the file changes."""
    import tomlkit

    document = tomlkit.parse(path.read_text("utf-8"))
    made = tomlkit.table()
    for key, value in values.items():
        made[key] = _item(value)
    if table in document:
        document[table] = made
    else:
        document.add(tomlkit.nl())
        document.add(table, made)
    files.write(path, tomlkit.dumps(document))


def without_table(text: str, table: str) -> str:
    """Return a document's text without one of its tables; all else stays as it was written."""
    import tomlkit

    document = tomlkit.parse(text)
    if table in document:
        document.remove(table)
    return tomlkit.dumps(document)


def without_key(path: Path, key: Sequence[str]) -> None:
    """Remove a key with the comment behind it; what is above it stays."""
    import tomlkit

    document: Any = tomlkit.parse(path.read_text("utf-8"))
    place = document
    for part in key[:-1]:
        place = place[part]
    place.remove(key[-1])
    files.write(path, tomlkit.dumps(document))


def put_list(path: Path, key: Sequence[str], values: Sequence[str]) -> None:
    """Set a list of strings, one a line; the comment above the list stays."""
    import tomlkit

    made = tomlkit.array()
    made.multiline(multiline=True)
    made.extend(values)
    _put(path, key, made)


def section(text: str, table: str) -> tuple[int, int]:
    """Return where a table's own lines begin and end in a document's text.

    The comments and blank lines at its end belong to what follows. Raises KeyError if the document
    has no such table.
    """
    found = re.search(rf"(?m)^\[{re.escape(table)}\][^\n]*\n(?:(?!\[).*\n?)*", text)
    if found is None:
        raise KeyError(table)
    end = found.end()
    while trailing := re.search(r"(?m)^(?:[ \t]*|#.*)\n\Z", text[found.start() : end]):
        end = found.start() + trailing.start()
    return found.start(), end


def put_section(path: Path, table: str, lines: str) -> None:
    """Replace a table by another text, or remove it where that is empty."""
    text = path.read_text("utf-8")
    start, end = section(text, table)
    rest = text[end:] if lines else text[end:].removeprefix("\n")
    files.write(path, text[:start] + lines + rest)


def put_value(path: Path, key: Sequence[str], value: str | bool) -> None:  # noqa: FBT001 a value
    """Set one value; a comment behind it stays."""
    _put(path, key, value)


def _put(path: Path, key: Sequence[str], value: object) -> None:
    """Set the value at a key, with the tables on the way to it."""
    import tomlkit

    document: Any = tomlkit.parse(path.read_text("utf-8"))
    place = document
    for part in key[:-1]:
        if part not in place:
            place[part] = tomlkit.table()
        place = place[part]
    place[key[-1]] = value
    files.write(path, tomlkit.dumps(document))


def _item(value: object) -> Any:  # noqa: ANN401 tomlkit's items have no common type
    """Return a value as tomlkit writes it; a mapping becomes an inline table."""
    import tomlkit

    if isinstance(value, Mapping):
        made = tomlkit.inline_table()
        made.update(value)
        return made
    return value
