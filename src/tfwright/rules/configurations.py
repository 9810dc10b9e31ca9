"""Rules of a tree for which Bazel compiles everything a second time, in another configuration."""

import ast
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfwright.rules.starlark.language import parse_python

Reader = Callable[[str], str | None]
"""Returns the text of a file of a tree, given its path; None if there is none."""
BAZELRCS = (".bazelrc", "tools/bazel.rc")
"""The files of a tree with its configurations of Bazel: the second one up to 1.12."""
MOST_PACKAGES = 600
"""Packages that are read; the Python rules of TensorFlow 1.15 reach some 300."""
_FOLLOWED = ("deps", "data", "srcs")
"""Attributes whose targets Bazel builds in the configuration of the rule itself."""
_LEADING_ON = r"sh_binary$|filegroup$|(.*_)?py_"
"""Rules that lead to programs in Python."""


@dataclass(frozen=True, order=True)
class Declaration:
    """Where a rule is declared."""

    path: str
    line: int
    rule: str
    """Its name, without the package."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class _Rule:
    """A call in a BUILD file that declares a target."""

    place: Declaration
    kind: str
    python: str
    """``PY2``, ``PY3``, or empty where the rule does not say."""
    labels: tuple[str, ...]


def reader(tree: Path) -> Reader:
    """Return what reads the files of a tree on disk."""

    def read(path: str) -> str | None:
        # BUILD files are the tree's: a damaged one is Bazel's to refuse.
        try:
            return (tree / path).read_text("utf-8", "replace")
        except OSError:
            return None

    return read


def tools_apart(bazelrc: str, flags: Sequence[str]) -> bool:
    """Say whether Bazel builds the programs that run during the build in another configuration."""
    return "--distinct_host_configuration=false" not in in_force(bazelrc, flags)


def in_force(bazelrc: str, flags: Sequence[str]) -> list[str]:
    """Return the flags of a build on Linux in their order, with those of its configurations."""
    lines = [line.split() for line in bazelrc.splitlines()]
    seen = set[str]()

    def of(config: str) -> Iterator[str]:
        for words in lines:
            if words and words[0] in {f"common{config}", f"build{config}"}:
                yield from expanded(words[1:])

    def expanded(words: Sequence[str]) -> Iterator[str]:
        for word in words:
            yield word
            name = word.removeprefix("--config=")
            # A configuration may lead back to itself.
            if name != word and name not in seen:
                seen.add(name)
                yield from of(f":{name}")

    always = list(of(""))
    # Lines such as build:rbe hold for a configuration that the user has to ask for. Those of the
    # platform hold by themselves in a tree that says so.
    if "--enable_platform_specific_config" in always:
        always += of(":linux")
    return [*always, *expanded(flags)]


def defined(bazelrc: str) -> set[str]:
    """Return the names that the lines of a bazelrc give a meaning as ``--config=NAME``."""
    return set(re.findall(r"(?m)^(?:build|common):(\S+)", bazelrc))


def for_python_2(target: str, read: Reader) -> list[Declaration]:
    """Return the programs for Python 2 that a target is built from, as far as BUILD files show it.

    Bazel 0.25 and later build everything for Python 3 first. A program for Python 2 has another
    configuration, and all the C++ and CUDA code that it depends on is compiled again for it.
    """
    packages: dict[str, Mapping[str, _Rule]] = {}
    found: set[Declaration] = set()
    wanted = deque([_split(target, "")])
    seen = set(wanted)
    while wanted:
        package, name = wanted.popleft()
        if package not in packages:
            if len(packages) == MOST_PACKAGES:
                break
            packages[package] = _rules(package, read(f"{package}/BUILD") or "")
        rule = packages[package].get(name)
        # Libraries in C++ depend on no program in Python, and have most of the packages.
        if rule is None or not re.match(_LEADING_ON, rule.kind):
            continue
        if rule.python == "PY2":
            found.add(rule.place)
        for text in rule.labels:
            label = _split(text, package)
            if label not in seen:
                seen.add(label)
                wanted.append(label)
    return sorted(found)


def _split(label: str, package: str) -> tuple[str, str]:
    """Return package and name of a label that is written in some package."""
    folder, colon, name = label.removeprefix("//").partition(":")
    if not label.startswith("//"):
        return package, name if colon else label
    return folder, name if colon else folder.rpartition("/")[2]


def _rules(package: str, text: str) -> Mapping[str, _Rule]:
    """Return the targets that a BUILD file declares, by name; none if it cannot be read."""
    tree = parse_python(text)
    if tree is None:
        return {}
    lists: dict[str, ast.expr] = {}
    rules: dict[str, _Rule] = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                lists[name] = value
            case ast.Expr(value=ast.Call(func=ast.Name(id=kind)) as call):
                texts = {
                    word.arg: tuple(_texts(word.value, lists)) for word in call.keywords if word.arg
                }
                name, python = (
                    next(iter(texts.get(key, ())), "") for key in ("name", "python_version")
                )
                labels = [label for key in _FOLLOWED for label in texts.get(key, ())]
                place = Declaration(f"{package}/BUILD", call.lineno, name)
                rules[name] = _Rule(place, kind, python, tuple(labels))
    return rules


def _texts(node: ast.expr, lists: Mapping[str, ast.expr]) -> Iterator[str]:
    """Yield each text in an expression, also in the lists that it names and in each branch."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
        elif isinstance(part, ast.Name) and part.id in lists:
            yield from _texts(lists[part.id], {})
