"""What a lock knows beside the rules: programs, packages, substitutes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.requirements import Requirement as Parsed
from packaging.utils import canonicalize_name

from tfwright.documents.recipe import Recipe, SubstituteTable
from tfwright.documents.toolkit import ToolkitTable
from tfwright.tools import files
from tfwright.tools.bazel import binary as bazel
from tfwright.tools.python import packages
from tfwright.vault.lock import (
    Lock,
    LockedBinary,
    LockedPackage,
    LockedRequirement,
    LockedSubstitute,
)


def binaries(version: str, binary: Path, sha256: str) -> dict[str, LockedBinary]:
    """Return the Bazel of this platform, with the address of its release."""
    return {
        bazel.here(): LockedBinary(
            url=bazel.release(version), sha256=sha256, size=binary.stat().st_size
        )
    }


def pinned(requirements: Sequence[str], lock: Lock | None) -> list[str]:
    """Return requirements with the hashes that a lock has for them: pip takes nothing else."""
    known = {
        _pin(entry.name, entry.version): entry for entry in (lock.requirements if lock else ())
    }
    return [_hashed(line, known.get(_pin_of(line))) for line in requirements]


def outdated(recipe: Recipe, lock: Lock) -> list[str]:
    """Return, a sentence each, what a recipe pins by now and its lock does not.

    Nothing but the two is read.
    """
    commit, bazel = recipe.source.commit, recipe.bazel.version
    patches = {*recipe.source.patches, *recipe.source.assets.values()}
    return [
        *(
            []
            if lock.tensorflow.commit == commit
            else [f"the commit is {commit}, the lock has {lock.tensorflow.commit}"]
        ),
        *(
            []
            if lock.bazel.version == bazel
            else [f"Bazel is {bazel}, the lock has {lock.bazel.version}"]
        ),
        *(
            f"{entry} is in the recipe or in the lock, not in both"
            for entry in sorted(patches ^ {file.path for file in lock.files})
        ),
        *unlocked(recipe.host.requirements, lock),
    ]


def unlocked(requirements: Sequence[str], lock: Lock) -> list[str]:
    """Return, a sentence each, which requirements of a recipe and of its lock are not the same."""
    locked = {_pin(entry.name, entry.version) for entry in lock.requirements}
    wanted = {_pin_of(line) for line in requirements}
    return [
        *(
            f"requirement {entry} is wanted, and not in the lock"
            for entry in sorted(wanted - locked)
        ),
        *(
            f"requirement {entry} is in the lock, and not wanted any more"
            for entry in sorted(locked - wanted)
        ),
    ]


def requirements(wanted: Sequence[str], folder: Path) -> tuple[LockedRequirement, ...]:
    """Return the locked form of requirements, given the folder that pip downloaded them into."""
    brought = {packages.project(path): path for path in folder.iterdir()}
    parsed = [Parsed(line.partition(" --hash")[0]) for line in wanted]
    return tuple(
        LockedRequirement(
            name=entry.name,
            version=str(entry.specifier).removeprefix("=="),
            hashes=(files.sha256(brought[canonicalize_name(entry.name)]),),
        )
        for entry in parsed
    )


def substitutes(
    tables: Mapping[str, SubstituteTable], replaced: Mapping[str, str]
) -> tuple[LockedSubstitute, ...]:
    """Return the locked form of substitutes, given the digests of what they replace, by name."""
    return tuple(
        LockedSubstitute(
            sha256=replaced[name], source=_source(table), reason=table.reason, used=table.sha256
        )
        for name, table in tables.items()
    )


def toolkit(table: ToolkitTable) -> tuple[LockedPackage, ...]:
    """Return the locked form of the packages that a recipe pins for its toolkit."""
    return tuple(
        LockedPackage(part=part, name=name, sha256=sha256)
        for part, packages in table.parts()
        for _, pins in packages.ways()
        for name, sha256 in pins.items()
    )


def _source(table: SubstituteTable) -> str:
    return f"{table.git} at {table.commit}" if table.git else table.urls[0]


def _hashed(line: str, locked: LockedRequirement | None) -> str:
    return (
        line
        if locked is None or "--hash" in line
        else line + "".join(f" --hash=sha256:{entry}" for entry in locked.hashes)
    )


def _pin_of(line: str) -> str:
    parsed = Parsed(line.partition(" --hash")[0])
    return _pin(parsed.name, str(parsed.specifier).removeprefix("=="))


def _pin(name: str, version: str) -> str:
    return f"{canonicalize_name(name)}=={version}"
