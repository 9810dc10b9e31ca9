"""`invoke cache --why`: why two builds share too little of the cache, by their execution logs."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents.host_file import HostFile
from tfwright.errors import RecipeError
from tfwright.printable import listed
from tfwright.tools.cache import execution_log, toolchain
from tfwright.tools.cache.execution_log import LoggedAction, plain
from tfwright.tools.cache.toolchain import Toolchain

ARGUMENTS = 5
"""Arguments that a difference lists."""
DIGITS = 19
"""Of a digest that stands for a part: enough for ``sha256:`` and twelve digits."""
TOOLCHAIN = re.compile(r".+-([0-9a-f]{12})(?:\.log)?")
"""How a log that is kept is called: its recipe, the time, and the toolchain's first digits."""


@dataclass(frozen=True)
class ActionChange:
    """An action that two builds ran differently."""

    mnemonic: str
    name: str
    what: str
    """The first difference: an argument, a variable or an input."""
    follows: bool
    """Whether the difference is an output of another action that differs."""


@dataclass(frozen=True)
class ToolchainChange:
    """A part of the toolchain that differs between two builds."""

    part: str
    before: str
    """How the part calls itself, else its digest; empty if only its files say what it is."""
    after: str
    files: tuple[str, ...]
    """Which of its files differ, or for headers which folders."""


@dataclass(frozen=True)
class CacheComparison:
    """Why two builds' actions have different keys."""

    changes: tuple[ActionChange, ...]
    same: int
    """Actions that are the same in both."""
    only_first: int
    only_second: int
    hits: int
    """Actions that the second build took from the cache."""
    missed: int
    """Actions that are the same in both, and that the second build ran nevertheless."""
    toolchains: tuple[ToolchainChange, ...] | None
    """None if one of the logs does not say with which it was built."""


def why(settings: HostFile, names: Sequence[str]) -> CacheComparison:
    """Compare the execution logs of two builds, each named by a path or as `invoke cache` lists it.

    Raises RecipeError for an unknown log, HostError if one cannot be read.
    """
    if len(names) != 2:  # noqa: PLR2004 one build is compared with another
        raise RecipeError(
            f"--why compares two builds, not {len(names)}",
            remedy="Name both: invoke cache --why FIRST --why SECOND",
        )
    before, after = (_actions(settings, name) for name in names)
    # Actions are matched by what they make: their keys are what the comparison has to explain.
    common = [name for name in after if name in before]
    differences = {
        name: found for name in common if (found := _difference(before[name], after[name]))
    }
    made = {plain(path) for name in differences for path in after[name].outputs}
    equal = {plain(path) for name in common for path in after[name].outputs} - made
    changes = []
    for name, (what, path) in differences.items():
        # Another compiler behind the same path, or an action that never repeats its result.
        same = "; the action that makes it is the same in both builds" if path in equal else ""
        changes.append(ActionChange(after[name].mnemonic, name, what + same, path in made))
    return CacheComparison(
        changes=tuple(sorted(changes, key=lambda change: change.follows)),
        same=len(common) - len(differences),
        only_first=len(before) - len(common),
        only_second=len(after) - len(common),
        hits=sum(action.hit for action in after.values()),
        missed=sum(not after[name].hit for name in common if name not in differences),
        toolchains=_toolchain_changes(*(_toolchain(settings, name) for name in names)),
    )


def _actions(settings: HostFile, name: str) -> dict[str, LoggedAction]:
    """Return what a log says, which is named by its path or its name."""
    for path in (Path(name), settings.cache_directory / "logs" / f"{name}.log"):
        if path.is_file():
            return {action.name: action for action in execution_log.read(path)}
    raise RecipeError(
        f"Unknown execution log {name!r}",
        remedy="Add logs = true to [cache] in the host file, build, and choose from "
        "'invoke cache': Bazel writes its execution log only when asked.",
    )


def _difference(before: LoggedAction, after: LoggedAction) -> tuple[str, str] | None:
    """Return the first difference of two actions, and the input that it is about."""
    # Arguments before inputs: a flag that changed explains the outputs that differ.
    old, new = ([*map(plain, action.arguments)] for action in (before, after))
    if old != new:
        return _exchanged(Counter(old) - Counter(new), Counter(new) - Counter(old)), ""
    for name, was, is_now in _unequal(before.variables, after.variables):
        return f"variable {name}: {was or 'unset'} became {is_now or 'unset'}", ""
    inputs = ({plain(path): sha for path, sha in one.inputs.items()} for one in (before, after))
    # An input that no action made explains the most, and comes first. Bazel writes outputs to
    # bazel-out/, so its paths tell the two apart.
    for path, was, is_now in sorted(_unequal(*inputs), key=lambda item: "-out/" in item[0]):
        return f"input {path}: {was[:12] or 'absent'} became {is_now[:12] or 'absent'}", path
    # Everything else is equal; Bazel's key has the folder all the same.
    if before.arguments != after.arguments or before.outputs != after.outputs:
        return "outputs are in another folder below bazel-out", ""
    return None


def _exchanged(gone: Counter[str], came: Counter[str]) -> str:
    """Say which arguments of an action went and came."""
    if gone and came:
        return f"{_listed(gone)} became {_listed(came).removeprefix('argument ')}"
    if gone or came:
        return f"{_listed(gone)} went" if gone else f"{_listed(came)} came"
    # Each as often as before, and not all where they were.
    return "the same arguments are in another order"


def _listed(arguments: Counter[str]) -> str:
    """Return arguments as a sentence begins with them: ``argument '-O2'``."""
    shown = list(map(repr, arguments.elements()))
    noun = "argument" if len(shown) == 1 else "arguments"
    return f"{noun} {listed(shown, ARGUMENTS)}"


def _unequal(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, ""), after.get(name, "")
        if old != new:
            yield name, old, new


def _toolchain(settings: HostFile, name: str) -> Toolchain | None:
    """Return the toolchain of the build that left a log, if its name says which."""
    named = TOOLCHAIN.fullmatch(Path(name).name)
    root = settings.cache_directory
    found = [*(root / "toolchains").glob(f"{named[1]}*.json")] if named else []
    return toolchain.kept(root, found[0].stem) if found else None


def _toolchain_changes(
    old: Toolchain | None, new: Toolchain | None
) -> tuple[ToolchainChange, ...] | None:
    """Return what differs between two toolchains."""
    if old is None or new is None:
        return None
    changes = []
    for name, _, _ in _unequal(old.parts, new.parts):
        compiler = name.partition(" of ")[2]
        # A part of a compiler that only one of the builds had is explained by that.
        if compiler and (compiler in old.parts) != (compiler in new.parts):
            continue
        differing = tuple(_files(old, new, name))
        changes.append(
            ToolchainChange(name, _described(old, name), _described(new, name), differing)
        )
    return tuple(changes)


def _described(tools: Toolchain, name: str) -> str:
    """Return how a part calls itself, or what stands for it; nothing for a part of many files."""
    if name not in tools.parts:
        return "absent"
    if len(tools.files.get(name, ())) > 1:
        return ""
    return tools.versions.get(name) or tools.parts[name][:DIGITS]


def _files(old: Toolchain, new: Toolchain, name: str) -> Iterator[str]:
    """Yield the files of a part that differ; one that was moved is the same."""
    before, after = old.files.get(name, {}), new.files.get(name, {})
    left = Counter((Path(path).name, digest) for path, digest in before.items())
    for path, digest in after.items():
        identity = Path(path).name, digest
        if left[identity]:
            left[identity] -= 1
        else:
            yield path
    names = {Path(path).name for path in after}
    yield from (
        f"{path} (in the first build only)" for path in before if Path(path).name not in names
    )
