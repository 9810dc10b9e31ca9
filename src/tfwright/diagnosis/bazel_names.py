"""Which Bazel knows an option, a rule, an attribute or a method.

The table next to this file holds what released versions say of themselves;
``benchmarks/bazel_names.py`` writes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tfwright import facts

FILE = Path(__file__).with_name("bazel_names.toml")

_OF_WORKSPACE = {
    "bind",
    "local_repository",
    "new_local_repository",
    "register_execution_platforms",
    "register_toolchains",
    "workspace",
}
"""Functions that WORKSPACE files alone may call."""

_ELSEWHERE = (
    "this one is older or newer, a flag (--incompatible_…) switched it off, or it is not allowed "
    "in this place"
)
_MISSING = {
    "option": "it stands with a command that does not take it, or this one is older or newer",
    "rule": (
        "this one is newer (8 and later load such rules from rule sets), or was built without it, "
        "as Debian's bazel-bootstrap without the rules for Android; or a .bzl file calls it "
        "without `native.`"
    ),
}
"""Why a Bazel may lack what every version has that was asked; `_ELSEWHERE` for other names."""

Spans = tuple[tuple[str, str], ...]
"""First and last versions; more than one pair for a name that went and came back."""


@dataclass(frozen=True)
class BazelNames:
    """What some versions of Bazel have."""

    versions: tuple[str, ...]
    """The versions that were asked, the oldest first."""
    spans: Mapping[str, Mapping[str, Spans]]
    """Of each kind of name, from which to which version it is there."""


@cache
def _read_table() -> BazelNames:
    document = facts.read(FILE)
    kinds = {name: texts for name, texts in document.items() if name != "versions"}
    spans: dict[str, dict[str, Spans]] = {kind: {} for kind in kinds}
    for kind, texts in kinds.items():
        for span, names in texts.items():
            first, _, last = span.partition(" ")
            for name in names.split():
                spans[kind][name] = (*spans[kind].get(name, ()), (first, last))
    return BazelNames(tuple(document["versions"].split()), spans)


def option(text: str) -> str:
    """Say which versions take an option, given as ``--name``, ``--name=value`` or ``-n``."""
    if not text.startswith("--"):
        return ""
    name = text.removeprefix("--").partition("=")[0]
    known = _read_table().spans.get("option", {})
    if name not in known and name.removeprefix("no") in known:
        # --noNAME switches --NAME off.
        name = name.removeprefix("no")
    return _sentence("option", name, f"--{name}") or (
        f"Of the versions {_bounds()}, none takes --{name}: it is mistyped, it belongs to another "
        "command or, after `--`, to the program that is run, or only other versions have it."
    )


def symbol(name: str) -> str:
    """Say which versions define a name of BUILD or .bzl files, or a member of `native`."""
    if name in _OF_WORKSPACE:
        # Where it is called counts, and not which version this is.
        return ""
    return (
        _sentence("symbol", name, f"`{name}`")
        or _sentence("rule", name, f"`{name}`")
        or _sentence("member", f"native.{name}", f"`native.{name}`")
    )


def member(name: str) -> str:
    """Say which versions have a method or a field, given as ``type.member``.

    Nothing is known of the types of rules (structures, providers).
    """
    known = _read_table().spans.get("member", {})
    kind = name.partition(".")[0]
    if not any(full.startswith(f"{kind}.") for full in known):
        return ""
    return _sentence("member", name, f"`{name}`") or (
        f"None of Bazel {_bounds()} has `{name}`: this one is older than the rules expect."
    )


def attribute(name: str) -> str:
    """Say which versions have an attribute, given as ``rule.attribute``."""
    rule, _, own = name.partition(".")
    return _sentence("attribute", name, f"the attribute `{own}` of {rule}")


def _bounds() -> str:
    versions = _read_table().versions
    return f"{versions[0]} to {versions[-1]}"


def _sentence(kind: str, name: str, shown: str) -> str:
    """Say which versions have a name; nothing if none of those that were asked has it."""
    ranges = " and ".join(
        first if first == last else f"{first} to {last}"
        for first, last in _read_table().spans.get(kind, {}).get(name, ())
    )
    if not ranges:
        return ""
    if ranges == _bounds():
        return f"Every Bazel from {ranges} has {shown}: {_MISSING.get(kind, _ELSEWHERE)}."
    # An option that a Bazel has is one that it takes. Other names can be switched off by a flag.
    flag = "" if kind == "option" else "; a flag (--incompatible_…) can switch it off"
    return f"Of Bazel {_bounds()}, {ranges} have {shown}{flag}."
