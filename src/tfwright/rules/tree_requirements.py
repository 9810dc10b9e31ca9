"""What setup.py of a tree requires, read and never run; held against the pins of a recipe."""

import ast
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tfwright.tools.python import sources

PATHS = ("tensorflow/tools/pip_package/setup.py", "tensorflow/tools/pip_package/setup.py.tpl")
"""Where a tree says it; from about 2.19 on in the second, which Bazel completes."""
NIGHTLY = "-nightly"
"""setup.py names two packages for some requirements, one of them for nightly wheels only."""


def setup_of(texts: Mapping[str, str]) -> str:
    """Return the setup.py of a tree; `texts` are its files of `PATHS` by path."""
    return next(filter(None, (texts.get(path) for path in PATHS)), "")


@dataclass(frozen=True)
class JudgedPin:
    """One requirement of setup.py, or one pin that nothing requires any more."""

    name: str
    state: Literal["fits", "look", "change"]
    says: str
    asks: str = ""
    """What `invoke pin` has to resolve; empty where the pin fits."""


def judged(pins: Sequence[str], setup: str, python: str) -> Iterator[JudgedPin]:
    """Judge each pin of ``verify.requirements`` by the text of a tree's setup.py.

    `python` is the target Python, as ``3.6``.
    """
    pinned: dict[str, Requirement] = {}
    for line in pins:
        # --hash belongs to pip, not to the requirement.
        exact = Requirement(line.partition(" --hash")[0])
        pinned[canonicalize_name(exact.name)] = exact
    for requirement in required(setup, python):
        name = canonicalize_name(requirement.name)
        asks = str(requirement).partition(";")[0].strip()
        held = pinned.get(name)
        if held is None:
            says = f"setup.py requires {asks}, and verify.requirements has no such pin"
            yield JudgedPin(name, "change", says, asks)
        elif not _holds(requirement, held):
            says = f"pinned as {held}; setup.py requires {asks}"
            yield JudgedPin(name, "change", says, asks)
        else:
            yield JudgedPin(name, "fits", f"{held} is what setup.py requires ({asks})")


def _holds(requirement: Requirement, pin: Requirement) -> bool:
    # `==` is the only operator of an exact pin.
    version = next(iter(pin.specifier)).version
    return requirement.specifier.contains(Version(version), prereleases=True)


def required(setup: str, python: str) -> list[Requirement]:
    """Return what setup.py requires for a Python; empty if it cannot be read.

    The program is read and never run: it is the tree's, and may be for Python 2.
    """
    tree = sources.parsed(setup)
    if tree is None:
        return []
    numbers = tuple(int(part) for part in python.split(".") if part.isdigit())
    found: dict[str, Requirement] = {}
    for text in _texts(tree.body, numbers):
        try:
            requirement = Requirement(text)
        # InvalidRequirement is a ValueError; brackets within brackets recurse.
        except (ValueError, RecursionError):
            continue
        marker = requirement.marker
        applies = marker is None or marker.evaluate({"python_version": python})
        if applies and not requirement.name.endswith(NIGHTLY):
            found.setdefault(canonicalize_name(requirement.name), requirement)
    return list(found.values())


def _texts(body: Sequence[ast.stmt], python: tuple[int, ...]) -> Iterator[str]:
    """Yield the texts that get into REQUIRED_PACKAGES at the top level of setup.py."""
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="REQUIRED_PACKAGES")], value=value):
                yield from _constants(value, python)
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id="REQUIRED_PACKAGES")), args=[added]
                )
            ):
                yield from _constants(added, python)
            case ast.If(test=test):
                answer = _answer(test, python)
                # A condition that cannot be read here decides about no requirement.
                if answer is not None:
                    branch = statement.body if answer else statement.orelse
                    yield from _texts(branch, python)


def _constants(value: ast.AST, python: tuple[int, ...]) -> Iterator[str]:
    """Yield the texts of a value, without those that only its conditions compare with."""
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(test=test, body=body, orelse=orelse):
            answer = _answer(test, python)
            # Where the condition cannot be read, both may apply.
            chosen = {True: [body], False: [orelse], None: [body, orelse]}[answer]
            for part in chosen:
                yield from _constants(part, python)
        case _:
            for child in ast.iter_child_nodes(value):
                yield from _constants(child, python)


def _answer(test: ast.expr, python: tuple[int, ...]) -> bool | None:
    """Return what a condition on the Python or the processor says; None for any other one."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left = ast.unparse(test.left)
    try:
        value = ast.literal_eval(test.comparators[0])
    except (ValueError, TypeError):
        return None
    if left == "sys.byteorder":
        return bool(value == "little")
    known = {"sys.version_info": python, "sys.version_info.major": python[:1]}
    bound = value if isinstance(value, tuple) else (value,)
    compare = _COMPARISONS.get(type(test.ops[0]))
    numbers = all(isinstance(part, int) for part in bound)
    if compare is None or not known.get(left) or not numbers:
        return None
    return bool(compare(known[left], bound))


_COMPARISONS = {ast.Lt: operator.lt, ast.GtE: operator.ge, ast.Eq: operator.eq}
