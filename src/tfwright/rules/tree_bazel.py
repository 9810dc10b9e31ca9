"""Which Bazel a tree asks for: in .bazelversion, or where ./configure or WORKSPACE checks it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_VERSION = r"['\"](\d+\.\d+\.\d+)['\"]"
_LIMITS = (
    # One of the two texts has both limits, in this order.
    ("configure.py", re.compile(rf"check_bazel_version\({_VERSION}(?:, *{_VERSION})?\)")),
    (
        "configure.py",
        re.compile(rf"_TF_MIN_BAZEL_VERSION = {_VERSION}\n(?:_TF_MAX_BAZEL_VERSION = {_VERSION})?"),
    ),
    ("configure", re.compile(rf"MIN_BAZEL_VERSION={_VERSION}()")),
    ("WORKSPACE", re.compile(rf"(?m)^check_version\({_VERSION}()\)")),
)
PATHS = (".bazelversion", "configure.py", "configure", "WORKSPACE")
"""The files of a tree that say it."""


@dataclass(frozen=True)
class TreeBazel:
    """What a tree says; an empty bound is none."""

    least: str
    most: str
    file: str
    exact: str = ""
    """The version in .bazelversion, which its authors built with."""


def stated(texts: Mapping[str, str]) -> TreeBazel | None:
    """Return what a tree says of its Bazel; None if it says nothing.

    `texts` are its files by path, as many of `PATHS` as it has.
    """
    # Comments and further lines are allowed in it; bazelisk reads the first line.
    first = texts.get(".bazelversion", "").partition("\n")[0].strip()
    if re.fullmatch(r"\d+\.\d+\.\d+", first):
        return TreeBazel(first, first, ".bazelversion", first)
    return _limits(texts)


def _limits(texts: Mapping[str, str]) -> TreeBazel | None:
    """Return the bounds that ./configure of a tree compares with."""
    for path, pattern in _LIMITS:
        if found := pattern.search(texts.get(path, "")):
            return TreeBazel(found[1], found[2] or "", path)
    return None
