"""TOML documents as frozen models; a fault is reported with file, line and remedy."""

import difflib
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tfwright.documents import opening
from tfwright.errors import Evidence, RecipeError
from tfwright.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic_core import ErrorDetails

    Location = tuple[int | str, ...]

# tomllib has no limits of its own: it takes quadratic time for some keys, and recurses on brackets.
LARGEST = 4 * 2**20
"""Bytes of a document; the largest lock file of ours has a hundredth of that."""
MOST_LINES = 50_000
"""Lines of a document; the largest lock file of ours has 1,400."""
DEEPEST = 32
"""Brackets within brackets, and parts of one dotted key."""
LONGEST_NUMBER = 100
"""Digits of one number; Python refuses to read more than 4,300."""
MOST_KEYS = 10_000
"""Keys and tables of a document, counted by its equals signs and brackets."""
SHOWN = 20
"""Faults that one message describes."""
LONGEST_VALUE = 200
"""Characters of a value that a message quotes."""
# A string without an end goes as far as the text: a pattern that failed there would try again at
# each of its quotes.
_STRINGS = re.compile(
    r'"""(?:[^\\]|\\.?)*?(?:"""|\Z)'
    r"|'''.*?(?:'''|\Z)"
    r'|"(?:[^"\\\n]|\\.?)*"?'
    r"|'[^'\n]*'?"
    r"|#[^\n]*",
    re.DOTALL,
)


class Table(BaseModel):
    """A table of a TOML document: frozen, and closed to keys that it does not know."""

    # Most commands read few of the tables, so pydantic compiles a validator at its first use.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=False,
        defer_build=True,
    )

    @classmethod
    def defaults(cls) -> Self:
        """Return the table of a document that does not have it."""
        # An ordinary call would compile a validator of its own for each of these tables, which
        # takes longer than reading a recipe.
        return cls.model_construct()  # type: ignore[return-value]  # the plugin says Table


Document = TypeVar("Document", bound=Table)


def load(
    path: Path,
    model: type[Document],
    extra: "Mapping[str, object] | None" = None,
) -> Document:
    """Read `path` as a `model`, with the values of `extra` added to the file's own.

    Raises RecipeError, naming every faulty line at once, if the file cannot be read, is not
    TOML, or does not fit the model. Hostile documents are refused in bounded time.
    """
    text = _text(path)
    values = _parsed(path, text)
    try:
        return model.model_validate({**values, **(extra or {})})
    except ValidationError as fault:
        raise _explain(path, text, model, fault.errors(include_url=False)) from fault


def _text(path: Path) -> str:
    """Read a document as UTF-8."""
    # One byte more than allowed shows that a file is too large, without reading all of it.
    try:
        with opening.plain(path) as stream:
            content = stream.read(LARGEST + 1)
    except OSError as fault:
        raise RecipeError(
            f"{path} cannot be read: {fault.strerror}",
            remedy="Check the path and its permissions.",
        ) from fault
    if len(content) > LARGEST:
        raise RecipeError(
            f"{path} is larger than {LARGEST:,} bytes",
            remedy="Check that this is the right file.",
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise RecipeError(
            f"{path} is not UTF-8 text",
            remedy="Save the file as UTF-8.",
        ) from fault


def _parsed(path: Path, text: str) -> dict[str, Any]:
    """Parse a document whose text cannot keep the parser busy."""
    # Editors on Windows write it, and the parser's own message would show nothing.
    if text.startswith("\ufeff"):
        raise _invalid(
            f"{path}:1", "a byte order mark", "Save the file as UTF-8 without it."
        )
    # The first excess is enough: any of them can keep tomllib busy for minutes.
    for line, why in _excesses(text):
        raise _invalid(f"{path}:{line}", why, "Shorten that line.")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        found = re.search(r"line (\d+)", str(fault))
        where = f"{path}:{found[1]}" if found else str(path)
        raise _invalid(
            where, str(fault), "Correct the line; strings need quotes."
        ) from fault
    # Neither is a TOMLDecodeError: numbers beyond Python's limit, and deep nesting.
    except (ValueError, RecursionError) as fault:
        raise _invalid(str(path), str(fault), "Correct the file.") from fault


def _invalid(
    where: str,
    why: str,
    remedy: str,
) -> RecipeError:
    return RecipeError(
        f"{where}: not valid TOML: {why}", remedy=remedy, evidence=Evidence(where=where)
    )


def _excesses(text: str) -> "Iterator[tuple[int, str]]":
    """Yield line and reason of whatever would take tomllib too long, or overflow its stack."""
    # With strings and comments blanked, brackets, dots and digits are what they seem to be.
    skeleton = _STRINGS.sub(lambda found: "\n" * found[0].count("\n"), text)
    # Python converts a long number in quadratic time.
    if number := re.search(rf"[0-9A-Fa-f_]{{{LONGEST_NUMBER},}}", skeleton):
        yield (
            _line_at(skeleton, number.start()),
            f"a number of more than {LONGEST_NUMBER} digits",
        )
    # tomllib calls itself for each bracket.
    depth = 0
    for bracket in re.finditer(r"[\[\]{}]", skeleton):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > DEEPEST:
            line = _line_at(skeleton, bracket.start())
            yield line, f"more than {DEEPEST} brackets within brackets"
            return
    # Each piece is looked at once: a pattern that counts dots would try again at each character.
    for piece in re.finditer(r"[^\n=,\[\]{}]+", skeleton):
        if piece[0].count(".") >= DEEPEST:
            line = _line_at(skeleton, piece.start())
            yield line, f"a key of more than {DEEPEST} parts"
            break
    if (keys := skeleton.count("=") + skeleton.count("[")) > MOST_KEYS:
        yield 1, f"{keys:,} keys and tables, more than {MOST_KEYS:,}"
    # Each fault is given the number of its line, which is found by reading all of them.
    if (lines := text.count("\n")) > MOST_LINES:
        yield 1, f"{lines:,} lines, more than {MOST_LINES:,}"


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _explain(
    path: Path,
    text: str,
    model: type[Table],
    faults: "Sequence[ErrorDetails]",
) -> RecipeError:
    """Turn pydantic's findings into one error with a line of the file for each."""
    # All at once: a person who writes a recipe corrects it in one go.
    lines = [_describe(path, text, model, fault) for fault in faults[:SHOWN]]
    what = lines[0]
    if len(faults) > 1:
        listed = [f"{path} has {len(faults)} faults:", *(f"  {line}" for line in lines)]
        if len(faults) > SHOWN:
            listed.append(f"  and {len(faults) - SHOWN:,} more")
        what = "\n".join(listed)
    first = f"{path}:{line_of(text, faults[0]['loc'])}"
    return RecipeError(
        what,
        remedy=_remedy(model, faults[0]),
        evidence=Evidence(where=first),
    )


def _describe(
    path: Path,
    text: str,
    model: type[Table],
    fault: "ErrorDetails",
) -> str:
    """Describe one fault in one line: where, which key, what is wrong."""
    where = f"{path}:{line_of(text, fault['loc'])}"
    dotted = ".".join(str(part) for part in fault["loc"]) or "the document"
    key = printable(dotted, LONGEST_VALUE)
    if fault["type"] == "extra_forbidden":
        # Cut, since difflib takes quadratic time for a long key.
        last = str(fault["loc"][-1])[:LONGEST_VALUE]
        known = _known_keys(model, fault["loc"][:-1])
        near = difflib.get_close_matches(last, known, n=1)
        guess = f"; did you mean {near[0]!r}?" if near else ""
        return f"{where}: unknown key {key}{guess}"
    if fault["type"] == "missing":
        return f"{where}: {key} is missing"
    message = fault["msg"].removeprefix("Value error, ")
    return f"{where}: {key}: {printable(message, 2 * LONGEST_VALUE)}"


def _remedy(model: type[Table], fault: "ErrorDetails") -> str:
    """Say what to do about the first fault."""
    if fault["type"] == "extra_forbidden":
        return f"Use one of: {', '.join(_known_keys(model, fault['loc'][:-1]))}."
    if fault["type"] == "missing":
        return f"Add {fault['loc'][-1]!r}; tfwright does not guess pins."
    return "Correct the value; recipes/README.md describes every key."


def _known_keys(model: type[Table], location: "Location") -> list[str]:
    """Return the keys of the table at `location`, walking down from `model`."""
    for part in location:
        field = model.model_fields.get(str(part))
        inner = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, Table)):
            return []
        model = inner
    return list(model.model_fields)


def line_of(text: str, location: "Location") -> int:
    """Return the line, from 1, of the key at `location` in the TOML `text`.

    The line of a missing key is its table's header; that of an unknown table is 1.
    """
    # tomllib keeps no positions. A flat document has one [table] header or one key in a line, so
    # the deepest header or key that matches is the place. The n-th [[table]] is item n - 1.
    parts, seen = list(location), Counter[str]()
    best, depth, table = 1, 0, list[int | str]()
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*(\[{1,2})([^\[\]]+)\]", line)
        key = re.match(r"\s*([\w.\"'/-]+)\s*=", line)
        if header:
            table = list(_dotted(header[2]))
            if header[1] == "[[":
                table.append(seen[header[2]])
            seen[header[2]] += 1
        here = table if header else [*table, *_dotted(key[1])] if key else []
        if here and here == parts[: len(here)] and len(here) > depth:
            best, depth = number, len(here)
    return best


def _dotted(text: str) -> "list[str | int]":
    """Split a TOML key such as ``source.assets`` or ``"a/b.h"`` into its parts."""
    return [
        quoted or bare
        for quoted, bare in re.findall(r"[\"']([^\"']*)[\"']|([\w/-]+)", text)
    ]
