"""TOML documents as frozen models; a fault is reported with file, line and remedy."""

import difflib
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tfwright.errors import Evidence, RecipeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_core import ErrorDetails

    Location = tuple[int | str, ...]


class Table(BaseModel):
    """A table of a TOML document: frozen, and closed to keys that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


Document = TypeVar("Document", bound=Table)


def load(
    path: Path, model: type[Document], extra: "Mapping[str, object] | None" = None
) -> Document:
    """Read `path` as a `model`, with the values of `extra` put beside the file's own.

    Raises RecipeError, naming every faulty line at once, if the file cannot be read, is no
    TOML, or does not fit the model.
    """
    try:
        text = path.read_text("utf-8")
        values = tomllib.loads(text)
    except OSError as fault:
        raise RecipeError(
            f"{path} cannot be read: {fault.strerror}", remedy="Check the path and its permissions."
        ) from fault
    except UnicodeDecodeError as fault:
        raise RecipeError(f"{path} is not UTF-8 text", remedy="Save the file as UTF-8.") from fault
    except tomllib.TOMLDecodeError as fault:
        line = re.search(r"line (\d+)", str(fault))
        where = f"{path}:{line[1]}" if line else str(path)
        raise RecipeError(
            f"{where}: not valid TOML: {fault}",
            remedy="Correct the line; strings need quotes.",
            evidence=Evidence(where=where),
        ) from fault
    try:
        return model.model_validate({**values, **(extra or {})})
    except ValidationError as fault:
        raise _explain(path, text, model, fault.errors(include_url=False)) from fault


def _explain(
    path: Path, text: str, model: type[Table], faults: "Sequence[ErrorDetails]"
) -> RecipeError:
    """Turn pydantic's findings into one error with a line of the file for each."""
    lines = [_describe(path, text, model, fault) for fault in faults]
    first = f"{path}:{line_of(text, faults[0]['loc'])}"
    what = (
        lines[0]
        if len(lines) == 1
        else f"{path} has {len(lines)} faults:\n" + "\n".join(f"  {line}" for line in lines)
    )
    return RecipeError(what, remedy=_remedy(model, faults[0]), evidence=Evidence(where=first))


def _describe(path: Path, text: str, model: type[Table], fault: "ErrorDetails") -> str:
    """Say one fault in one line: where, which key, what is wrong."""
    where = f"{path}:{line_of(text, fault['loc'])}"
    key = ".".join(str(part) for part in fault["loc"]) or "the document"
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(
            str(fault["loc"][-1]), _known_keys(model, fault["loc"][:-1]), n=1
        )
        return f"{where}: unknown key {key}" + (f"; did you mean {near[0]!r}?" if near else "")
    if fault["type"] == "missing":
        return f"{where}: {key} is missing"
    return f"{where}: {key}: {fault['msg'].removeprefix('Value error, ')}"


def _remedy(model: type[Table], fault: "ErrorDetails") -> str:
    """Say what to do about the first fault."""
    if fault["type"] == "extra_forbidden":
        return f"Use one of: {', '.join(_known_keys(model, fault['loc'][:-1]))}."
    if fault["type"] == "missing":
        return f"Add {fault['loc'][-1]!r}; every pin is stated, none is guessed."
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
    """Return the line, from 1, where the key at `location` stands in the TOML `text`.

    tomllib keeps no positions. A flat document is one ``[table]`` header and one ``key =`` per
    line, so the deepest header and key that match are looked for; a missing key is placed at its
    table's header, an unknown table at line 1. The n-th ``[[table]]`` header is item n - 1 of its list.
    """
    parts, seen = list(location), Counter[str]()
    best, depth, table = 1, 0, list[int | str]()
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*(\[{1,2})([^\[\]]+)\]", line)
        key = re.match(r"\s*([\w.\"'/-]+)\s*=", line)
        if header:
            table = [*_dotted(header[2]), *([seen[header[2]]] if header[1] == "[[" else [])]
            seen[header[2]] += 1
        here = table if header else [*table, *_dotted(key[1])] if key else []
        if here and here == parts[: len(here)] and len(here) > depth:
            best, depth = number, len(here)
    return best


def _dotted(text: str) -> list[str]:
    """Split a TOML key such as ``source.assets`` or ``"a/b.h"`` into its parts."""
    return [quoted or bare for quoted, bare in re.findall(r"[\"']([^\"']*)[\"']|([\w/-]+)", text)]
