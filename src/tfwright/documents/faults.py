"""What is wrong with a TOML document, in words for its author: line, key, value and remedy."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from tfwright.documents.names import FORMS
from tfwright.errors import invoke
from tfwright.printable import did_you_mean, nearest, printable

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from tfwright.documents.toml import Table

Location = tuple[int | str, ...]
LONGEST_VALUE = 200
"""Characters of a value that a message quotes."""
SHOWN = 20
"""Faults that are described; each one is looked for in the whole document."""
SPELLED = 60
"""Characters of a value that stands next to what it should be."""
GENERAL = "Correct the value; {page} describes every key."

# By the names that pydantic gives to its findings.
_WANTED = {
    "string_type": "a text in quotes",
    "tuple_type": 'a list in brackets, such as ["a", "b"]',
    "bool_type": "true or false, without quotes",
    "bool_parsing": "true or false, without quotes",
    "int_type": "a whole number, without quotes",
    "int_parsing": "a whole number, without quotes",
    "int_from_float": "a whole number",
    "float_type": "a number, without quotes",
    "float_parsing": "a number, without quotes",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "path_type": "a path in quotes",
    "date_type": "a date such as 2026-11-22, without quotes",
    "date_parsing": "a date such as 2026-11-22, without quotes",
    "date_from_datetime_parsing": "a date such as 2026-11-22, without quotes",
    "date_from_datetime_inexact": "a date such as 2026-11-22, without a time",
}
_COMPARED = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


@dataclass(frozen=True)
class DocumentFault:
    """One fault of a document."""

    line: int
    what: str
    remedy: str


# What is TOML, but does not fit


def document_faults(
    text: str, values: Mapping[str, object], model: "type[Table]", found: Sequence["ErrorDetails"]
) -> tuple[list[DocumentFault], int]:
    """Turn pydantic's first findings into one fault for each key; return how many there are of all.

    `values` is what the document says, `model` the class that it should fit.
    """
    faults: dict[Location, DocumentFault] = {}
    # The items of a list that break one rule are one fault: that of the first.
    alike = defaultdict[tuple[Location, str], list["ErrorDetails"]](list)
    for finding in found:
        location = finding["loc"]
        item = location and isinstance(location[-1], int)
        alike[location[:-1] if item else location, finding["msg"]].append(finding)
    places = [_document_location(values, finding) for finding, *_ in islice(alike.values(), SHOWN)]
    for place, (finding, *others) in zip(places, alike.values(), strict=False):
        # Of a value that may be a path or a table, only what is wrong inside the table counts.
        if isinstance(finding["input"], Mapping) and any(
            len(other) > len(place) and other[: len(place)] == place for other in places if place
        ):
            continue
        fault = _describe(text, place, model, finding)
        # An answer may be of two types, and then has a finding for each; a text that is refused for
        # what it says has the second one only to go by.
        if place in faults and finding["type"] == "string_type":
            what = f"{_dotted_name(place)}: must be true, false or a text in quotes"
            value = _toml_text(finding["input"])
            fault = DocumentFault(fault.line, f"{what}, not {value}", GENERAL)
        elif place in faults and finding["type"] == "model_type":
            continue
        if others:
            name = _dotted_name(place)
            named = f"{name} and {len(others):,} more of this list"
            fault = replace(fault, what=fault.what.replace(name, named, 1))
        faults[place] = fault
    general = GENERAL.format(page=model.PAGE)
    described = [
        replace(fault, remedy=general) if fault.remedy == GENERAL else fault
        for fault in faults.values()
    ]
    # Fewer than pydantic's findings: a value of the wrong type can have two of them.
    return described, len(described) if len(alike) <= SHOWN else len(alike)


def _document_location(values: Mapping[str, object], finding: "ErrorDetails") -> Location:
    """Return the part of a location that the document has; pydantic adds names of types."""
    location = finding["loc"]
    lacking = location[-1:] if finding["type"] == "missing" else ()
    inner: Any = values
    place = list[int | str]()
    for part in location[: len(location) - len(lacking)]:
        with suppress(KeyError, IndexError, TypeError):
            inner = inner[part]
            place.append(part)
    return (*place, *lacking)


def _describe(
    text: str, place: Location, model: "type[Table]", finding: "ErrorDetails"
) -> DocumentFault:
    line = line_of(text, place)
    key = _dotted_name(place)
    table = _table_at(model, place[:-1])
    if finding["type"] == "extra_forbidden":
        known = list(table.model_fields) if table else []
        what = f"unknown key {key}{did_you_mean(str(place[-1]), known)}"
        return DocumentFault(line, what, f"Use one of: {', '.join(known)}.")
    if finding["type"] == "missing":
        last = str(place[-1])
        own = table.REMEDIES.get(last) if table else None
        remedy = own or f"Add {last!r}; tfwright does not guess pins."
        return DocumentFault(line, f"{key} is missing", remedy)
    # A checksum of what can be downloaded, which its author left open.
    if finding["input"] == "" and (
        place[-1:] == ("sha256",) or {*place[-2:]} & {"files", "wheels", "archives"}
    ):
        return DocumentFault(line, f"{key} is empty", f"Let '{invoke('pin')}' write it.")
    what, remedy = _describe_value(finding, _source_line(text, line), place)
    if finding["type"] == "model_type" and (wanted := _table_at(model, place)):
        fields = wanted.model_fields
        needed = [name for name, field in fields.items() if field.is_required()]
        remedy = f"Write a table [{key}] with {', '.join(needed or fields)}."
    # A rule about several keys names the one to change, and pydantic only their table.
    named = re.match(r"([a-z_]+(?:\.[a-z_]+)+): ", what)
    if named:
        line = line_of(text, tuple(named[1].split(".")))
        return DocumentFault(line, what, remedy)
    return DocumentFault(line, f"{key}: {what}", remedy)


def _dotted_name(place: Location) -> str:
    dotted = ".".join(str(part) for part in place) or "the document"
    return printable(dotted, LONGEST_VALUE)


def _source_line(text: str, line: int) -> str:
    lines = text.splitlines()
    # Cut: blanks without end would keep a regular expression busy.
    return lines[line - 1][: 2 * LONGEST_VALUE] if line <= len(lines) else ""


def _describe_value(finding: "ErrorDetails", source: str, place: Location) -> tuple[str, str]:
    """Say what a value must be, and what to write."""
    kind = finding["type"]
    value = _toml_text(finding["input"])
    context = finding.get("ctx", {})
    if kind in _WANTED:
        return f"must be {_WANTED[kind]}, not {value}", _corrected_line(kind, source, place)
    if kind in _COMPARED:
        words, bound = _COMPARED[kind]
        return f"must be {words} {context.get(bound)}, not {value}", GENERAL
    if kind == "literal_error":
        return _describe_choice(str(context.get("expected")), finding["input"]), GENERAL
    if kind == "string_pattern_mismatch":
        pattern = str(context.get("pattern"))
        form = FORMS.get(pattern, f"of the form {pattern}")
        return f"must be {form}, not {value}", GENERAL
    message = printable(finding["msg"].removeprefix("Value error, "), 2 * LONGEST_VALUE)
    # A list is at fault in one of its items, which the author has to find.
    quoted = isinstance(finding["input"], str) and message.startswith("must")
    remedy = GENERAL
    if message.startswith("must be an exact pin"):
        remedy = "Write name==version."
        # pin resolves the lists of this name, and no plugins.
        if place[1:2] == ("requirements",):
            remedy = f"Write name==version, or let '{invoke('pin')}' choose the version."
    return f"{value} {message}" if quoted else message, remedy


def _describe_choice(expected: str, value: object) -> str:
    what = f"must be {expected}, not {_toml_text(value)}"
    choices = re.findall(r"'([^']*)'", expected)
    by_lower_case = {choice.lower(): choice for choice in choices}
    near = nearest(str(value).lower(), by_lower_case)
    return f"{what}; did you mean {by_lower_case[near]!r}?" if near else what


def _corrected_line(kind: str, source: str, place: Location) -> str:
    """Return the line to write, where the value only lacks its quotes or brackets."""
    assigned = re.match(r"\s*([\w.\"'/-]+)\s*=\s*([^#\[\]{}]*[^#\[\]{}\s])", source)
    if not assigned or not place or not isinstance(place[-1], str):
        return GENERAL
    key = assigned[1]
    value = printable(assigned[2], LONGEST_VALUE)
    if kind == "string_type":
        # The document's own text: as a number, 3.10 is the same as 3.1.
        return f'Write {key} = "{value}".'
    if kind == "tuple_type":
        return f"Write {key} = [{value}]."
    bare = value.strip("\"'")
    if re.fullmatch(r"true|false|[\d.]+|\d{4}-\d\d-\d\d", bare) and bare != value:
        return f"Write {key} = {bare}."
    return GENERAL


def _toml_text(value: object) -> str:
    """Return a value as TOML has it, cut to what a message can hold."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str | bool | int | float):
        return printable(json.dumps(value, ensure_ascii=False), SPELLED)
    return printable(str(value), SPELLED)


def _table_at(model: "type[Table]", location: Location) -> "type[Table] | None":
    """Return the class of the table at `location`; None where it is not known."""
    for part in location:
        field = model.model_fields.get(str(part))
        annotation = field.annotation if field else None
        # dict[Name, Table] and tuple[Table, ...]: the next part is a name or a number.
        if annotation is None:
            continue
        inner = [annotation, *getattr(annotation, "__args__", ())]
        # A table among the types of a union.
        inner += [kind for union in inner[1:] for kind in getattr(union, "__args__", ())]
        tables = [kind for kind in inner if hasattr(kind, "model_fields")]
        if not tables:
            return None
        model = tables[0]
    return model


# What is not TOML


def syntax_fault(text: str, message: str) -> DocumentFault:
    """Turn the parser's message into a fault, with the key and the earlier line that it means."""
    found = re.search(r"line (\d+)", message)
    # At the end of the document the parser names no line.
    line = int(found[1]) if found else max(len(text.splitlines()), 1)
    source = _source_line(text, line)

    if re.match(r"(<{7}|={7}|>{7}|\|{7})( |$)", source):
        what = "a line of an unfinished merge"
        return DocumentFault(line, what, "Finish the merge, and delete git's marks.")
    if re.search(r"twice|overwrite a value|redefine namespace|mutate immutable|Duplicate", message):
        return _repetition_fault(text, line)
    other = (
        "",
        re.sub(r" \(at [^)]*\)", "", message),
        'Correct the line; a text needs quotes: key = "value".',
    )
    _, what, remedy = next((row for row in _SYNTAX if re.search(row[0], message)), other)
    # A value that only lacks its quotes.
    assigned = re.match(r"\s*([\w.-]+)\s*=\s*([^#\"'\[{]*[^#\"'\[{\s])", source)
    if assigned and remedy == _QUOTED:
        value = printable(assigned[2], LONGEST_VALUE)
        remedy = f'Write {assigned[1]} = "{value}".'
    return DocumentFault(line, what, remedy)


def _repetition_fault(text: str, line: int) -> DocumentFault:
    """Name the key or the table that stands in a document twice, and where it stood first."""
    entries = _entries(text)
    here = [entry for number, entry in entries if number <= line]
    if here:
        first = next(number for number, entry in entries if entry == here[-1])
        last = max(number for number, entry in entries if number <= line)
        name = _dotted_name(here[-1])
        if first < last:
            what = f"{name} is set a second time; the first one is in line {first}"
            return DocumentFault(last, what, "Delete one of the two, or merge them.")
        what = f"{name} is a value above, and a table here, or the other way round"
        return DocumentFault(last, what, "Write the table in one way only.")
    return DocumentFault(line, "a key is set a second time", "Delete one of the two.")


_QUOTED = 'Write key = "value".'
_SYNTAX = (
    (
        r"Illegal character '\\n'|Unterminated string|Expected '\"",
        "a text has no closing quote on its line",
        'Close it: key = "value".',
    ),
    (
        r"Unclosed array",
        "a list is not closed, or a comma is missing at the end of the line before",
        "Separate the items by commas; end with a bracket.",
    ),
    (
        r"Expected '=' after a key",
        "a key has no equals sign behind it",
        'Write key = "value", not key: value.',
    ),
    (
        r"Invalid value|Expected newline or end of document",
        "a value that is neither a text in quotes nor a number, a date or true or false",
        _QUOTED,
    ),
    (
        r"Unescaped '\\\\'|Invalid hex value|escape",
        "a backslash that TOML does not know",
        "Double it, or put the text in single quotes.",
    ),
)
"""Messages of tomllib, what they mean, and what to do."""

# Lines

# Not any text with an equals sign: a list of flags has such lines.
_PART = r"(?:[\w-]+|\"[^\"]*\"|'[^']*')"
_KEY = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=")


def first_line(fault: "ValidationError") -> str:
    """Say the first thing that is wrong with a document that no person wrote."""
    # Without the input, which may be the megabytes that a server sent.
    first = fault.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    what = first["msg"].removeprefix("Value error, ")
    # JSON that cannot be parsed has no place.
    return f"{place}: {what}" if place else what


def line_of(text: str, location: Location) -> int:
    """Return the line, from 1, of the key at `location` in the TOML `text`.

    The line of a missing key is its table's header; that of an unknown table is 1.
    """
    best, depth = 1, 0
    for number, entry in _entries(text):
        # A dotted key may go on below the location: assets."a.h".b for ("assets", "a.h").
        shared = min(len(entry), len(location))
        if entry[:shared] == location[:shared] and shared > depth:
            best, depth = number, shared
    return best


@lru_cache(maxsize=1)
def _entries(text: str) -> Sequence[tuple[int, Location]]:
    """Return each line that has a table's header or a key, and where in the document that is."""
    # tomllib keeps no positions. A flat document has one [table] header or one key in a line, so
    # the deepest header or key that matches is the place. The n-th [[table]] is item n - 1.
    seen = Counter[str]()
    table: list[int | str] = []
    entries = list[tuple[int, Location]]()
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*(\[{1,2})([^\[\]]+)\]", line)
        key = _KEY.match(line)
        if header:
            table = list(_key_parts(header[2]))
            if header[1] == "[[":
                table.append(seen[header[2]])
            seen[header[2]] += 1
            entries.append((number, tuple(table)))
        elif key:
            entries.append((number, (*table, *_key_parts(key[1]))))
    return entries


def _key_parts(text: str) -> list[str | int]:
    """Split a TOML key such as ``source.assets`` or ``"a/b.h"`` into its parts."""
    return [quoted or bare for quoted, bare in re.findall(r"[\"']([^\"']*)[\"']|([\w/-]+)", text)]
