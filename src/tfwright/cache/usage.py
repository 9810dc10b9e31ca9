"""`invoke cache`: what the build cache holds and did, and why two builds share too little of it."""

import itertools
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents.host_file import HostFile
from tfwright.errors import RecipeError
from tfwright.printable import listed
from tfwright.tools.cache import execution_log, toolchain, usage
from tfwright.tools.cache.execution_log import LoggedAction
from tfwright.tools.cache.store import GIB, CacheStore
from tfwright.tools.cache.toolchain import Toolchain
from tfwright.tools.cache.usage import CachedBuild

SHOWN = 10
"""Builds that are listed."""
ARGUMENTS = 5
"""Arguments that a difference lists."""
DIGITS = 19
"""Of a digest that stands for a part: enough for ``sha256:`` and twelve digits."""
LOG_TIME = "%Y%m%d-%H%M%S"
LOG_NAME = re.compile(r"(?P<recipe>.+)-(?P<moment>\d{8}-\d{6})(?:\.log)?")
"""How a log that is kept is called: its recipe, and this host's time."""


@dataclass(frozen=True)
class KeptToolchain:
    """What the cache holds for one toolchain."""

    digest: str
    entries: int
    parts: Mapping[str, str]
    """What each part of it is = its digest."""


@dataclass(frozen=True)
class CacheState:
    """The state of this host's cache."""

    directory: Path
    held: int
    """Bytes."""
    limit: int
    """Bytes."""
    server: str | None
    toolchains: tuple[KeptToolchain, ...]
    builds: tuple[CachedBuild, ...]
    """The newest first."""
    logs: tuple[Path, ...]
    """Execution logs, the newest first."""


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
    """None if the history does not hold both builds any more."""


def look(settings: HostFile) -> CacheState:
    """Look at the cache of this host; nothing is changed.

    Raises HostError if its directory cannot be read.
    """
    root = settings.cache_directory
    limit = int(settings.cache.size * GIB)
    builds = tuple(reversed(usage.read(root)))[:SHOWN]
    # The names end with date and time, so the newest sort last.
    logs = tuple(sorted((root / "logs").glob("*.log"), reverse=True))
    # Looking must not make a directory: a host without a cache has none.
    if not root.is_dir():
        return CacheState(root, 0, limit, settings.cache.server, (), (), ())
    directory = CacheStore(root, limit)
    toolchains = tuple(
        KeptToolchain(digest, entries, toolchain.kept(root, digest).parts)
        for digest, entries in directory.toolchains().items()
    )
    held = directory.held
    return CacheState(root, held, limit, settings.cache.server, toolchains, builds, logs)


def why(settings: HostFile, names: Sequence[str]) -> CacheComparison:
    """Compare the execution logs of two builds, each named by a path or as `look` lists it.

    Raises RecipeError for an unknown log, HostError if one cannot be read.
    """
    if len(names) != 2:  # noqa: PLR2004 one build is compared with another
        raise RecipeError(
            f"--why compares two builds, not {len(names)}",
            remedy="Name both: invoke cache --why FIRST --why SECOND",
        )
    first, second = names
    return _compared(
        _actions(_log(settings, first)),
        _actions(_log(settings, second)),
        _toolchain_changes(settings, first, second),
    )


def _actions(log: Path) -> dict[str, LoggedAction]:
    return {action.name: action for action in execution_log.read(log)}


def _compared(
    before: Mapping[str, LoggedAction],
    after: Mapping[str, LoggedAction],
    toolchains: tuple[ToolchainChange, ...] | None,
) -> CacheComparison:
    # Actions are matched by what they make: their keys are what the comparison has to explain.
    common = [name for name in after if name in before]
    changed = [name for name in common if _difference(before[name], after[name])]
    made = _outputs(after[name] for name in changed)
    equal = _outputs(after[name] for name in common) - made
    changes = tuple(_change(before[name], after[name], made, equal) for name in changed)
    missed = [name for name in common if not after[name].hit]
    return CacheComparison(
        changes=tuple(sorted(changes, key=lambda change: change.follows)),
        same=len(common) - len(changed),
        only_first=len(before) - len(common),
        only_second=len(after) - len(common),
        hits=sum(action.hit for action in after.values()),
        missed=len(set(missed) - set(changed)),
        toolchains=toolchains,
    )


def _log(settings: HostFile, name: str) -> Path:
    """Return a log by its path or its name."""
    for path in (Path(name), settings.cache_directory / "logs" / f"{name}.log"):
        if path.is_file():
            return path
    remedy = (
        "Add logs = true to [cache] in the host file, build, and choose from 'invoke cache': "
        "Bazel writes its execution log only when asked."
    )
    raise RecipeError(f"Unknown execution log {name!r}", remedy=remedy)


def _outputs(actions: Iterable[LoggedAction]) -> set[str]:
    """Return what actions make, as paths without the folder of a configuration."""
    paths = itertools.chain.from_iterable(action.outputs for action in actions)
    return {execution_log.plain(path) for path in paths}


def _change(
    before: LoggedAction, after: LoggedAction, made: set[str], equal: set[str]
) -> ActionChange:
    """Describe a difference; `made` and `equal` are what differing and equal actions make."""
    what, path = _difference(before, after) or ("", "")
    if path in equal:
        # Another compiler behind the same path, or an action that never repeats its result.
        what += "; the action that makes it is the same in both builds"
    return ActionChange(after.mnemonic, after.name, what, path in made)


def _difference(before: LoggedAction, after: LoggedAction) -> tuple[str, str] | None:
    """Return the first difference of two actions, and the input that it is about."""
    # Arguments before inputs: a flag that changed explains the outputs that differ.
    if said := _arguments(before, after):
        return said, ""
    for name, old, new in _unequal(before.variables, after.variables):
        return f"variable {name}: {old or 'unset'} became {new or 'unset'}", ""
    # An input that no action made explains the most, and comes first. Bazel writes outputs to
    # bazel-out/, so its paths tell the two apart.
    unequal = sorted(
        _unequal(_plain(before.inputs), _plain(after.inputs)), key=lambda item: "-out/" in item[0]
    )
    for path, old, new in unequal:
        return (f"input {path}: {old[:12] or 'absent'} became {new[:12] or 'absent'}", path)
    # Everything else is equal; Bazel's key has the folder all the same.
    if before.arguments != after.arguments or before.outputs != after.outputs:
        return "outputs are in another folder below bazel-out", ""
    return None


def _arguments(before: LoggedAction, after: LoggedAction) -> str:
    """Say which arguments of an action went and came; nothing if they are the same."""
    old = list(map(execution_log.plain, before.arguments))
    new = list(map(execution_log.plain, after.arguments))
    if old == new:
        return ""
    return _exchanged(_listed(Counter(old) - Counter(new)), _listed(Counter(new) - Counter(old)))


def _exchanged(gone: str, came: str) -> str:
    if gone and came:
        return f"{gone} became {came.removeprefix('argument ')}"
    if gone or came:
        return f"{gone} went" if gone else f"{came} came"
    # Each as often as before, and not all where they were.
    return "the same arguments are in another order"


def _listed(arguments: Counter[str]) -> str:
    """Return arguments as a sentence begins with them: ``argument '-O2'``."""
    shown = list(map(repr, arguments.elements()))
    if not shown:
        return ""
    noun = "argument" if len(shown) == 1 else "arguments"
    return f"{noun} {listed(shown, ARGUMENTS)}"


def _plain(inputs: Mapping[str, str]) -> dict[str, str]:
    return {execution_log.plain(path): digest for path, digest in inputs.items()}


def _unequal(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, ""), after.get(name, "")
        if old != new:
            yield name, old, new


def _toolchain_changes(
    settings: HostFile, first: str, second: str
) -> tuple[ToolchainChange, ...] | None:
    """Return what differs between the toolchains of two builds, where the history has both."""
    root = settings.cache_directory
    before, after = _build_of(root, first), _build_of(root, second)
    if before is None or after is None:
        return None
    old = toolchain.kept(root, before.use.toolchain)
    new = toolchain.kept(root, after.use.toolchain)
    named = (name for name, _, _ in _unequal(old.parts, new.parts))
    return tuple(
        ToolchainChange(
            name, _described(old, name), _described(new, name), tuple(_files(old, new, name))
        )
        for name in named
        if not _explained(name, old, new)
    )


def _explained(name: str, old: Toolchain, new: Toolchain) -> bool:
    """Say whether a part belongs to a compiler that only one of the builds had."""
    compiler = name.partition(" of ")[2]
    return bool(compiler) and (compiler in old.parts) != (compiler in new.parts)


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
    left = Counter(_identities(before))
    for path, identity in zip(after, _identities(after), strict=True):
        if left[identity]:
            left[identity] -= 1
        else:
            yield path
    names = {Path(path).name for path in after}
    for path in before:
        if Path(path).name not in names:
            yield f"{path} (in the first build only)"


def _identities(files: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(Path(path).name, digest) for path, digest in files.items()]


def _build_of(root: Path, name: str) -> CachedBuild | None:
    """Return the build that left a log: the recipe's last one when the log got its name."""
    named = LOG_NAME.fullmatch(Path(name).name)
    if named is None:
        return None
    try:
        moment = time.mktime(time.strptime(named["moment"], LOG_TIME))
    except (ValueError, OverflowError):
        return None
    builds = [
        build
        for build in usage.read(root)
        # The name has whole seconds.
        if build.recipe == named["recipe"] and build.finished < moment + 1
    ]
    return max(builds, key=lambda build: build.finished, default=None)
