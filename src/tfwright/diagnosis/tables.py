"""What is known of names: which package has a header, which library a symbol belongs to.

The tables are in ``tables.toml``: ordered rows of a regular expression and a sentence.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from tfwright.diagnosis import bazel_names, mangled

FILE = Path(__file__).with_name("tables.toml")

_PLACE = re.compile(r"\{(?:(?P<of>\w+)\+)?(?P<name>\w+)(?:\|(?P<table>\w+))?\}")
_PART = re.compile(r"<([^<>]*)>")
_OR = "||"
_GAPS = (
    (re.compile(r" {2,}"), " "),
    (re.compile(r"\( +"), "("),
    (re.compile(r" +\)"), ")"),
    (re.compile(r"(?: ?:(?= )){2,} ?"), ": "),
    (re.compile(r" ?: ?(?=[).](?:\s|$))"), ""),
    # A parameter may end with a full stop. An ellipsis, as in `-L...`, keeps its three.
    (re.compile(r"(?<!\.)\. ?\.(?=\s|$)"), "."),
    # "`df -h . /tmp`" is left alone: only the end of a sentence closes up.
    (re.compile(r" \.(?=\s+[A-Z`]|\s*$)"), "."),
    # A parameter may end with a question.
    (re.compile(r"(?<=[?!])\.(?=\s|$)"), ""),
)
"""What is replaced in a sentence whose parameters are in place, in this order."""
_WORD = re.compile(r"[A-Za-z0-9_/@.][A-Za-z0-9_.+/=:,@~^-]{0,200}")
"""A parameter that stays one word wherever it is put."""
_WORDS = re.compile(r"[A-Za-z0-9_/@.-][A-Za-z0-9_.+/=:,@~^*<>-]*(?: [A-Za-z0-9_.+/=:,@~^*<>-]+)*")
"""What a table says: words of this program's own, with such a parameter among them."""
_LONGEST = 300
"""Characters of a parameter that a sentence shows."""
_COMPUTED: Mapping[str, Callable[[str], str]] = {
    "bazel_option": bazel_names.option,
    "bazel_symbol": bazel_names.symbol,
    "bazel_member": bazel_names.member,
    "bazel_attribute": bazel_names.attribute,
    "symbol_namespace": lambda symbol: look_up("namespace", mangled.outermost(symbol)),
}
"""Tables whose sentences are computed: from what versions of Bazel say of themselves, or from the
parts of a name."""


@lru_cache
def _tables() -> Mapping[str, tuple[tuple[re.Pattern[str], str], ...]]:
    """Return every table with its patterns compiled."""
    document = tomllib.loads(FILE.read_text("utf-8"))
    return {
        name: tuple((re.compile(pattern), text) for pattern, text in rows)
        for name, rows in document.items()
    }


def look_up(table: str, value: str) -> str:
    r"""Return the sentence of the first row that matches `value`; empty if none does.

    A sentence may use the groups of its pattern, as ``\1``.
    """
    if table in _COMPUTED:
        return _COMPUTED[table](value)
    for pattern, text in _tables()[table]:
        found = pattern.search(value)
        if found:
            return found.expand(text)
    return ""


def known_tables() -> frozenset[str]:
    """Return the names of all tables."""
    return frozenset((*_tables(), *_COMPUTED))


def fill(template: str, parameters: Mapping[str, str]) -> str:
    """Return a template's text: ``{name}`` is a parameter, ``{name|table}`` what is known of it.

    ``{of+name|table}`` looks for two parameters that belong together, as ``rule.attribute``.

    A part in angle brackets is left out where none of its parameters has a value. Of alternatives
    in it, ``<...||...>``, the first that says something counts.
    """

    def value(place: re.Match[str]) -> str:
        given = parameters.get(place["name"], "")
        if place["of"]:
            owner = parameters.get(place["of"], "")
            given = f"{owner}.{given}" if owner and given else ""
        if place["table"]:
            return look_up(place["table"], given) if given else ""
        return given[:_LONGEST]

    def part(found: re.Match[str]) -> str:
        alternatives = found[1].split(_OR)
        if len(alternatives) > 1:
            said = (
                alternative
                for alternative in alternatives
                if _PLACE.sub(value, alternative).strip()
            )
            return next(said, "")
        names = [place["name"] for place in _PLACE.finditer(found[1])]
        if not names:
            # Plain angle brackets, as around the name of a header.
            return found[0]
        return found[1] if any(parameters.get(name) for name in names) else ""

    return _tidy(_PLACE.sub(value, _PART.sub(part, template)))


def line(template: str, parameters: Mapping[str, str]) -> str:
    """Return a line that people copy; empty if one of its places is.

    Parameters come from a log that anybody may have written: one that a shell or TOML could read
    as more than a name leaves the line empty, too.
    """
    values = []
    for place in _PLACE.finditer(template):
        value = fill(place[0], parameters)
        if not (_WORDS if place["table"] else _WORD).fullmatch(value):
            return ""
        values.append(value)
    filled = iter(values)
    return _PLACE.sub(lambda _: next(filled), template)


def _tidy(text: str) -> str:
    """Close the gaps and doubled stops that empty parameters leave in a sentence."""
    for pattern, replacement in _GAPS:
        text = pattern.sub(replacement, text)
    return text.strip()


def names_in(template: str) -> frozenset[tuple[str, str]]:
    """Return the parameters of a template, each with the table that is looked up, or none."""
    places = _PLACE.finditer(template)
    return frozenset((place["name"], place["table"] or "") for place in places)
