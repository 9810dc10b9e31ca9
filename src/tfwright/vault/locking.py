"""What a lock holds in addition to the rules: programs, packages, substitutes."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfwright.documents.names import EXACT_PIN
from tfwright.documents.recipe import BazelTable, Recipe, SubstituteTable
from tfwright.documents.toolkit import ToolkitTable
from tfwright.tools import files
from tfwright.tools.container import image as images
from tfwright.tools.python import packages
from tfwright.vault.lock import (
    Lock,
    LockedImage,
    LockedPackage,
    LockedRequirement,
    LockedSubstitute,
    RulesPackage,
)


def with_hashes(requirements: Sequence[str], lock: Lock | None) -> list[str]:
    """Return requirements with the hashes that a lock has for them: pip takes nothing else."""
    locked = lock.requirements if lock else ()
    known = {packages.pin_of(entry.pin): entry.hashes for entry in locked}
    # Hashes that the recipe itself states come first: pip would accept either of two sets. With one
    # hash pip insists on hashes for every requirement.
    return [
        line
        if "--hash" in line
        else " --hash=sha256:".join((line, *known.get(packages.pin_of(line), ())))
        for line in requirements
    ]


def packages_of(pins: Sequence[str]) -> tuple[RulesPackage, ...]:
    """Return the locked form of what a tree pins for pip; one without a checksum has none."""
    found = (re.match(r"([\w.-]+)(?:\[[^]]*\])?==([\w.!+-]+)", pin, re.ASCII) for pin in pins)
    return tuple(
        RulesPackage(name=name[1], version=name[2], hashes=tuple(dict.fromkeys(hashes)))
        for name, pin in zip(found, pins, strict=True)
        if name and (hashes := re.findall(r"--hash=sha256:([0-9a-f]{64})\b", pin))
    )


def bazel_checksums(table: BazelTable, lock: Lock | None) -> dict[str, str]:
    """Return the checksums of Bazel's binaries by platform: the recipe's, then those of a lock."""
    locked = {}
    # A lock of another version is out of date, which the fetch stage says.
    if lock and lock.bazel.version == table.version:
        for platform, binary in lock.bazel.binaries.items():
            locked[platform] = binary.sha256
    return {**locked, **table.sha256}


def recipe_differences(recipe: Recipe, lock: Lock) -> list[str]:
    """Return, a sentence each, what a recipe pins by now and its lock does not.

    Nothing but the two is read: a build says at its start that its lock is out of date.
    """
    image, locked = recipe.host.image, lock.image
    values = {
        "the commit": (recipe.source.commit, lock.tensorflow.commit),
        "Bazel": (recipe.bazel.version, lock.bazel.version),
        "the container image": (
            image.digest if image else "none",
            locked.digest if locked else "none",
        ),
    }
    different = {*recipe.source.named_files} ^ {file.path for file in lock.files}
    return [
        *(
            f"{what} is {now}, the lock has {was}"
            for what, (now, was) in values.items()
            if now != was
        ),
        *(f"{path} is in the recipe or in the lock, not in both" for path in sorted(different)),
        *requirement_differences(recipe.host.requirements, lock),
    ]


def requirement_differences(requirements: Sequence[str], lock: Lock) -> list[str]:
    """Return, a sentence each, which requirements of a recipe and of its lock are not the same."""
    locked = {packages.pin_of(entry.pin) for entry in lock.requirements}
    wanted = set(map(packages.pin_of, requirements))
    idle = (f"requirement {pin} is in the lock, and not wanted any more" for pin in locked - wanted)
    return [
        *sorted(f"requirement {pin} is wanted, and not in the lock" for pin in wanted - locked),
        *sorted(idle),
    ]


def requirements(wanted: Sequence[str], folder: Path) -> tuple[LockedRequirement, ...]:
    """Return the locked form of requirements, given the folder that pip downloaded them into."""
    # A requirement may be spelled otherwise than its file: numpy_x, NumPy-X. The project's
    # canonical name joins them.
    digests = {packages.project_of_file(path): files.sha256(path) for path in folder.iterdir()}
    found = filter(None, map(EXACT_PIN.match, wanted))
    return tuple(
        LockedRequirement(
            name=pin["name"],
            version=pin["version"],
            hashes=(digests[packages.name_of(pin["name"])],),
        )
        for pin in found
    )


def substitutes(
    tables: Mapping[str, SubstituteTable], replaced: Mapping[str, str]
) -> tuple[LockedSubstitute, ...]:
    """Return the locked form of substitutes, given the digests of what they replace, by name."""
    return tuple(
        LockedSubstitute(
            sha256=replaced[name],
            source=f"{table.git} at {table.commit}" if table.git else table.urls[0],
            reason=table.reason,
            used=table.sha256,
        )
        for name, table in tables.items()
    )


def image(recipe: Recipe, vault: Path) -> LockedImage | None:
    """Return the image of a recipe as the vault has it. Raises SupplyError if it does not."""
    pinned = recipe.host.image
    if pinned is None:
        return None
    kept = images.find_image(vault, pinned.digest)
    return LockedImage(
        name=pinned.name, digest=pinned.digest, parts=kept.manifest.parts, size=kept.size
    )


def toolkit(table: ToolkitTable) -> tuple[LockedPackage, ...]:
    """Return the locked form of the packages that a recipe pins for its toolkit."""
    return tuple(
        LockedPackage(part=part, name=name, sha256=sha256)
        for part, packages in table.parts()
        # All ways: which of them a host takes depends on what it can reach.
        for _, pins in packages.ways()
        for name, sha256 in pins.items()
    )
