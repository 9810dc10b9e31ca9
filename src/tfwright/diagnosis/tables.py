"""Sentences and lines to type with what is known of names: which package has a header, say.

The tables are in ``tables.toml``: ordered rows of a regular expression and a sentence. A family has
its advice (commands, and lines of a recipe or of the host file) as templates. A line whose
parameters the log does not name is left out, and so is one that a hostile log could turn into
another command.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from tfwright import facts
from tfwright.diagnosis import bazel_names
from tfwright.diagnosis.families import Family
from tfwright.facts import compatibility, wheels

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
    (re.compile(r"(?<=[?!。])\.(?=\s|$)"), ""),
)
"""What is replaced in a sentence whose parameters are in place, in this order."""
_WORD = re.compile(r"[A-Za-z0-9_/@.][A-Za-z0-9_.+/=:,@~^-]{0,200}")
"""A parameter that stays one word wherever it is put."""
_WORDS = re.compile(r"[A-Za-z0-9_/@.-][A-Za-z0-9_.+/=:,@~^*<>-]*(?: [A-Za-z0-9_.+/=:,@~^*<>-]+)*")
"""What a table says: words of this program's own, with such a parameter among them."""
_NESTED = re.compile(r"_{1,3}Z(?:T[VTIS]|GV)?N[rVKRO]{0,4}(?P<length>\d{1,3})(?P<names>\w+)")
_SCOPED = re.compile(
    r"(?:vtable for |typeinfo (?:name )?for |guard variable for )?(?P<name>[A-Za-z_]\w*)::"
)
_WANTED = re.compile(r"[=<>~!]=?=? ?(\d[\w.!+]*)")
"""The version in a requirement."""
_REQUESTED = re.compile(
    r"^ +(?:The user requested(?: \(constraint\))?|(?P<owner>\S+) \S+ depends on)"
    r" (?P<name>[\w.-]+)(?:\[[\w,.-]*\])? ?(?P<limits>[<>=!~].{0,200})$",
    re.MULTILINE,
)
"""A row of the list in which pip says what asks for which versions."""
_OFFICIAL = re.compile(
    r"['\"]?(?P<project>tensorflow(?:-[cg]pu)?)(?:\[[\w,-]*\])?"
    r"(?:==(?P<version>[\d.]+\d))?(?![\w-])"
)
_COLUMNS = {
    "Windows": ("windows",),
    "Darwin": ("macos_arm64", "macos_x86_64"),
    "64-bit ARM": ("linux_aarch64",),
}
"""Where the table of official wheels has the Pythons of a platform; others are Linux on x86-64."""
_OFTEN_MEANT = ("tensorflow", "tensorboard", "tensorrt", "keras", "protobuf", "bazelisk")
"""Packages whose names people spell in other ways."""
_LONGEST = 300
"""Characters of a parameter that a sentence shows."""


@cache
def _tables() -> Mapping[str, tuple[tuple[re.Pattern[str], str], ...]]:
    """Return every table with its patterns compiled."""
    return {
        name: tuple((re.compile(pattern), text) for pattern, text in rows)
        for name, rows in facts.read(FILE).items()
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


def namespace(symbol: str) -> str:
    """Return the outermost namespace (or class) of a symbol of C++; empty if it has none.

    A mangled name (Itanium C++ ABI, section 5.1.2) is a row of lengths and names:
    ``_ZN2cv6String8allocateEm`` is ``cv::String::allocate(unsigned long)``.
    """
    nested = _NESTED.match(symbol)
    if nested:
        return nested["names"][: int(nested["length"])]
    scoped = _SCOPED.match(symbol)
    return scoped["name"] if scoped else ""


def nearest_version(choice: str) -> str:
    """Return the versions of a list next to the one that is wanted; empty if there are none.

    `choice` is what pip says: ``tensorflow==2.11.1 (from versions: 2.11.0, 2.12.0)``.
    """
    requirement, _, listed = choice.partition("(from versions: ")
    wanted = _WANTED.search(requirement)
    if not wanted:
        return ""
    try:
        limit = Version(wanted[1])
        versions = sorted(map(Version, listed.rstrip(")").split(", ")))
    except InvalidVersion:
        return ""
    final = [version for version in versions if not version.is_prerelease] or versions
    lower = [f"{version} (the next lower)" for version in final if version < limit]
    higher = [f"{version} (the next higher)" for version in final if version > limit]
    return " or ".join(lower[-1:] + higher[:1])


def conflicting_rows(rows: str) -> str:
    """Return the two rows that exclude each other; empty if none of pip's rows do.

    Each is "The user requested grpcio==1.27.2" or "tensorflow 2.4.0 depends on grpcio~=1.32.0".
    """
    for one, other in combinations(_REQUESTED.finditer(rows), 2):
        if one["name"] != other["name"] or one["owner"] == other["owner"]:
            continue
        # Not every version of a list is one.
        with suppress(ValueError):
            limits = SpecifierSet(f"{one['limits']},{other['limits']}".replace(" and ", ","))
            # A range begins at a version that it names, or right behind it.
            named = [each.version.removesuffix(".*") for each in limits]
            if not any(limits.filter(["0", *named, *(f"{version}.0.0.1" for version in named)])):
                return f"{one[0].strip()}; {other[0].strip()}"
    return ""


def official_wheels(requirement: str, python: str, platform: str) -> str:
    """Say for which Pythons a requirement of TensorFlow has wheels; empty for another package.

    `python` is the one that asks for it, where that is known; so is `platform`, a system or ARM.
    """
    if not (found := _OFFICIAL.match(requirement)):
        return ""
    project, version = found["project"], found["version"]
    columns = _COLUMNS.get(platform, ("linux_x86_64",))
    made_for = {
        each: sorted({python for name in columns for python in getattr(row, name)}, key=Version)
        for row in wheels.official()
        if row.project == project
        for each in (row.version, *row.also)
    }
    on = f" on {platform.replace('Darwin', 'macOS')}" if platform else ""
    if version in made_for:
        pythons = ", ".join(made_for[version])
        return f"{project} {version} has " + (
            f"wheels for Python {pythons}{on}." if pythons else f"no wheels{on}."
        )
    fitting = sorted((each for each in made_for if python in made_for[each]), key=Version)
    if fitting:
        ends = f"{fitting[0]} to {fitting[-1]}"
        return f"Of {project}, {ends} have wheels for Python {python}{on}."
    newest = next((each for each in made_for if made_for[each]), "")
    pythons = ", ".join(made_for.get(newest, ()))
    other = f", and not for {python}" if python else ""
    sentence = f"The newest {project}, {newest}, has wheels for Python {pythons}{other}{on}."
    return sentence if newest else ""


def meant_package(requirement: str) -> str:
    """Return the package whose name a requirement nearly has; empty if it has a name of its own."""
    name = re.split(r"[^a-z0-9]", requirement.lower())[0]
    near = difflib.get_close_matches(name, _OFTEN_MEANT, 1, 0.8)
    return "".join(near) if name not in near else ""


def cuda_for(capability: str) -> str:
    """Return which versions of CUDA compile for a GPU; empty if none is known."""
    fitting = compatibility.cudas_for(capability)
    if not fitting:
        return ""
    if fitting[-1] == compatibility.cudas()[-1].version:
        return f"CUDA {fitting[0]} or later"
    return f"CUDA {fitting[-1]} or earlier"


_COMPUTED: Mapping[str, Callable[[str], str]] = {
    "bazel_option": bazel_names.option,
    "bazel_symbol": bazel_names.symbol,
    "bazel_member": bazel_names.member,
    "bazel_attribute": bazel_names.attribute,
    "symbol_namespace": lambda symbol: look_up("namespace", namespace(symbol)),
    "nearest_version": nearest_version,
    "meant_package": meant_package,
    "cuda_for": cuda_for,
}
"""Tables whose sentences are computed: from what versions of Bazel say of themselves, or from the
parts of a name."""


def fill(template: str, parameters: Mapping[str, str]) -> str:
    """Return a template's text: ``{name}`` is a parameter, ``{name|table}`` what is known of it.

    ``{of+name|table}`` looks for two parameters that belong together, as ``rule.attribute``.

    A part in angle brackets is left out where none of its parameters has a value. Of alternatives
    in it, ``<...||...>``, the first that says something counts, or else the last.
    """

    def value(place: re.Match[str]) -> str:
        parameter = parameters.get(place["name"], "")
        if place["of"]:
            owner = parameters.get(place["of"], "")
            parameter = f"{owner}.{parameter}" if owner and parameter else ""
        if place["table"]:
            return look_up(place["table"], parameter) if parameter else ""
        return parameter[:_LONGEST]

    def part(found: re.Match[str]) -> str:
        alternatives = found[1].split(_OR)
        if len(alternatives) > 1:
            nonempty = (each for each in alternatives if any(map(value, _PLACE.finditer(each))))
            return next(nonempty, alternatives[-1])
        names = [place["name"] for place in _PLACE.finditer(found[1])]
        if not names:
            # Plain angle brackets, as around the name of a header.
            return found[0]
        return found[1] if any(parameters.get(name) for name in names) else ""

    text = _PLACE.sub(value, _PART.sub(part, template))
    # Empty parameters leave gaps and doubled stops.
    for pattern, replacement in _GAPS:
        text = pattern.sub(replacement, text)
    return text.strip()


def copyable_line(template: str, parameters: Mapping[str, str]) -> str:
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


@dataclass(frozen=True)
class Advice:
    """Lines that can be copied as they are, or with the words in capitals replaced."""

    recipe: tuple[str, ...] = ()
    """Keys of a recipe, each as `[table] key = value`."""
    host_file: tuple[str, ...] = ()
    """Keys of the host file, in the same form; those without a table as `key = value`."""
    commands: tuple[str, ...] = ()
    """Commands of a shell, in their order."""

    def __bool__(self) -> bool:
        """Say whether there is anything to type."""
        return bool(self.recipe or self.host_file or self.commands)


def advice(family: Family, parameters: Mapping[str, str]) -> Advice:
    """Return what a family advises, with the parameters of a log in place."""

    def filled(templates: tuple[str, ...]) -> tuple[str, ...]:
        lines = [copyable_line(template, parameters) for template in templates]
        return tuple(dict.fromkeys(text for text in lines if text and not text.startswith(foreign)))

    # The log shows its system where it does: a Mac has no packages of Debian's.
    on_debian = parameters.get("system") not in {"Darwin", "Windows"}
    foreign: tuple[str, ...] = () if on_debian else ("apt-get ",)
    if look_up("foreign_speaker", parameters.get("speaker", "")):
        foreign += ("invoke ",)
        return Advice(commands=filled(family.commands))
    return Advice(filled(family.recipe), filled(family.host_file), filled(family.commands))
