"""Changes to a TOML file that people wrote: their comments, order and blank lines stay."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfwright.tools import files

if TYPE_CHECKING:
    from tomlkit.items import Item

LONG, SHORT = 100, 85
"""Characters of a line of a list, and of a whole list behind its key."""
_PART = re.compile(r"""\n|#[^\n]*|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
"""What a list of texts consists of, besides commas and blanks."""
_REQUIREMENT = re.compile(r"(\w[\w.-]*)(\[.*\])? *([=<>!~].*)?")


def write(path: Path, text: str) -> None:
    """Write the text of a document, with the line ends that its file has."""
    crlf = path.is_file() and b"\r\n" in files.content(path)
    files.write(path, text.replace("\n", "\r\n") if crlf else text)


@contextmanager
def _editing(path: Path, *key: str | int) -> Iterator[Any]:
    """Give a part of the document in a file, which is written if the block ends well.

    A table that is not there is made.
    """
    import tomlkit

    document: Any = tomlkit.parse(path.read_text("utf-8"))
    place = document
    for part in key:
        if isinstance(part, str) and part not in place:
            place[part] = tomlkit.table()
        place = place[part]
    yield place
    write(path, tomlkit.dumps(document))


def put_table(path: Path, table: str, values: Mapping[str, object]) -> None:
    """Replace a table, or add it at the end; nothing else in the file changes."""
    import tomlkit

    made = tomlkit.table()
    for key, value in values.items():
        inline = isinstance(value, Mapping)
        made[key] = tomlkit.inline_table() if inline else value
        if inline:
            made[key].update(value)
    lines = tomlkit.dumps({table: made})
    try:
        put_section(path, (table,), lines)
    except KeyError:
        write(path, f"{path.read_text('utf-8')}\n{lines}")


def without_table(text: str, table: str) -> str:
    """Return a document's text without one of its tables; all else stays as it was written."""
    try:
        start, end = find_section(text, (table,))
    except KeyError:
        return text
    return text[:start] + text[end:]


def remove_key(path: Path, key: Sequence[str]) -> None:
    """Remove a key, or a table, with the comment behind it; what is above it stays.

    Nothing happens if the document does not have it.
    """
    with _editing(path) as document:
        place = document
        for part in key[:-1]:
            place = place.get(part, {})
        place.pop(key[-1], None)


def replace_item(path: Path, key: Sequence[str], value: str, other: str = "") -> None:
    """Put another text in the place of one of a list, or remove it; layout and comments stay."""
    with _editing(path, *key) as place:
        if other:
            place[place.index(value)] = other
        else:
            place.remove(value)


def find_section(text: str, table: Sequence[str]) -> tuple[int, int]:
    """Return where a table, with those within it, begins and ends in a document's text.

    The comments and blank lines at its end belong to what follows. Raises KeyError if the document
    has no such table under a header of its own.
    """
    headers = list(re.finditer(r"(?m)^[ \t]*\[[^\n]*\n?", text))
    wanted = tuple(table)
    for number, header in enumerate(headers):
        if _header_parts(header[0]) != wanted:
            continue
        others = (
            after.start()
            for after in headers[number + 1 :]
            if (name := _header_parts(after[0]))
            and (name == wanted or name[: len(wanted)] != wanted)
        )
        own = text[header.start() : next(others, len(text))]
        while trailing := re.search(r"(?m)^(?:[ \t]*|#.*)\n\Z", own):
            own = own[: trailing.start()]
        return header.start(), header.start() + len(own)
    raise KeyError(".".join(table))


def _header_parts(header: str) -> tuple[str, ...]:
    """Return the parts of a table's name: ``[a."b.c"]`` is ("a", "b.c"); empty for other lines."""
    import tomlkit
    from tomlkit.exceptions import ParseError

    try:
        place: Any = tomlkit.parse(header)
    except ParseError:
        # A line of a list may begin with a bracket as well.
        return ()
    parts: list[str] = []
    while isinstance(place, Mapping) and len(place) == 1:
        (key,) = place
        parts.append(str(key))
        place = place[key]
    return tuple(parts)


def put_section(path: Path, table: Sequence[str], lines: str) -> None:
    """Replace a table by another text, or remove it where that is empty."""
    text = path.read_text("utf-8")
    start, end = find_section(text, table)
    rest = text[end:] if lines else text[end:].removeprefix("\n")
    write(path, text[:start] + lines + rest)


def put(
    path: Path,
    key: Sequence[str | int],
    value: str | bool | Sequence[str],  # noqa: FBT001 a value
    reason: str = "",
) -> None:
    """Set a value, or a list of strings; a number in the key counts ``[[tables]]``.

    A comment above a list or in it stays, and one behind a value, unless a reason takes its place.
    """
    import tomlkit
    from tomlkit.container import OutOfOrderTableProxy

    item: Any = value
    with _editing(path, *key[:-1]) as place:
        if not isinstance(value, str | bool):
            before = place[key[-1]].as_string() if key[-1] in place else ""
            item = tomlkit.value(_format_with_comments(before, value))
        elif reason:
            item = _with_reason(value, reason)
        trailing = []
        # A table that dotted keys make has no body; its keys stand in the table around it.
        if key[-1] not in place and not isinstance(place, OutOfOrderTableProxy):
            # tomlkit takes the comment above the next header for the end of this table.
            body = place.body if hasattr(place, "body") else place.value.body
            own = len(body)
            while own and body[own - 1][0] is None:
                own -= 1
            trailing = body[own:]
            del body[own:]
        place[key[-1]] = item
        if trailing:
            body.extend(trailing)


def format_list(values: Sequence[str]) -> str:
    """Return a list as TOML, on one line where it fits, else as many of its texts a line as fit."""
    items = [f"{json.dumps(value, ensure_ascii=False)}," for value in values]
    alone = f"[{' '.join(items).removesuffix(',')}]"
    if len(alone) <= SHORT:
        return alone
    lines = [""]
    for item in items:
        if lines[-1] and len(f"{lines[-1]} {item}") > LONG:
            lines.append("")
        lines[-1] = f"{lines[-1]} {item}".strip()
    return "\n    ".join(["[", *lines]) + "\n]"


def _format_with_comments(before: str, values: Sequence[str]) -> str:
    """Return a list as TOML, with the comments in the text of the list that it replaces.

    A comment goes with the text that it stands above or behind; a package may have another version.
    """
    import tomlkit

    head, waiting, name = "", list[str](), None
    above, behind = dict[str, list[str]](), dict[str, str]()
    for part in _PART.findall(before):
        if part == "\n":
            head, name = head or " ", None
        elif not part.startswith("#"):
            name = _package_name(str(tomlkit.value(part)))
            above[name], waiting, head = waiting, [], head or " "
        elif name is not None:
            behind[name] = f"  {part}"
        elif head:
            waiting.append(part)
        else:
            head = f"  {part}"
    if not (head.strip() or waiting or behind or any(above.values())):
        return format_list(values)
    lines = [f"[{head.rstrip()}"]
    for value in values:
        lines += [f"    {comment}" for comment in above.get(_package_name(value), ())]
        text = json.dumps(value, ensure_ascii=False)
        lines.append(f"    {text},{behind.get(_package_name(value), '')}")
    return "\n".join([*lines, *(f"    {comment}" for comment in waiting), "]"])


def _package_name(text: str) -> str:
    """Return the package that a text of a list names, or the whole text."""
    found = _REQUIREMENT.fullmatch(text)
    return found[1] if found else text


def _with_reason(value: str | bool, reason: str) -> "Item":  # noqa: FBT001 a value
    """Return a value with the reason as the comment behind it."""
    import tomlkit

    item = tomlkit.item(value)
    item.comment(reason)
    item.trivia.comment_ws = "  "
    return item


def put_dotted(path: Path, table: str, key: tuple[str, str], value: str, why: str) -> None:
    """Set ``a.b = value`` among a table's own lines, with the reason behind it.

    A table of its own for ``a``, where the document has one, gets the value instead.
    """
    import tomlkit

    item = _with_reason(value, why)
    with _editing(path, table) as own:
        if key[0] in own:
            own[key[0]][key[1]] = item
        else:
            own.append(tomlkit.key(list(key)), item)
