"""`invoke pin`: exact versions and checksums for what a recipe leaves open."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from packaging.requirements import Requirement

from tfwright.documents.composing import (
    PINS,
    PINS_HEAD,
    named_packages,
    pins_head,
    pins_text,
    recipe_values,
)
from tfwright.documents.names import EXACT_PIN
from tfwright.errors import HostError, RecipeError, SupplyError
from tfwright.facts import compatibility
from tfwright.host import pythons
from tfwright.pipeline import external
from tfwright.pipeline.job import RecipeJob
from tfwright.rules import tree_files
from tfwright.tools import files, toml_editing
from tfwright.tools.bazel import binary as bazels
from tfwright.tools.python import packages, resolving


@dataclass(frozen=True)
class Pinned:
    """What was written into a recipe."""

    path: Path
    lists: dict[str, tuple[str, ...]]
    """The packages by the key of their list."""
    changes: tuple[str, ...]
    """Each pin that is new, gone or of another version."""
    bazel: str
    """The checksum of Bazel's binary for this machine; empty if it was there already."""


def pin(
    job: RecipeJob, path: Path, added: Sequence[str] = (), verifying: Sequence[str] = ()
) -> Pinned:
    """Resolve the packages of a recipe with everything they need, and write them as exact pins.

    `job` has the recipe without those that its file names without a version; they are resolved.
    `added` are further requirements of the build, such as ``h5py`` or ``numpy==1.14.5``,
    `verifying` those of the wheel; the other pins that are there keep their versions. Bazel's
    checksum is written last, and stays open where only packages could be had. Raises RecipeError
    for what is not such a requirement, HostError if the target Python is missing, SupplyError if
    pip finds no versions that fit together.
    """
    recipe = job.recipe
    named = named_packages(recipe_values(path))
    # The lines of the document that pin no version, by the key of their list.
    opened = {key: list(filter(_is_open, lines)) for key, lines in named.items()}
    options = {"--add": added, "--verify": verifying}
    for where, lines in (*options.items(), *opened.items()):
        for line in lines:
            _check_requirement(where, line)
    asked = {"host.requirements": added, "verify.requirements": verifying}
    direct = {key: [*lines, *asked[key]] for key, lines in opened.items()}
    wanted = {
        key: _Unresolved.of(lines, getattr(recipe, key.partition(".")[0]).requirements, direct[key])
        for key, lines in named.items()
    }
    # A recipe without packages can be pinned on any host.
    if not any(each.packages for each in wanted.values()):
        return Pinned(path, {}, (), _pin_bazel(job, path))
    lists = _pin_packages(job, path, wanted, direct)
    changes = []
    for key, pins in lists.items():
        table, name = key.split(".")
        before, now = {*getattr(getattr(recipe, table), name)}, {*pins}
        changes += [f"+ {pin}  ({key})" for pin in sorted(now - before)]
        changes += [f"- {pin}  ({key})" for pin in sorted(before - now)]
    try:
        bazel = _pin_bazel(job, path)
    except (SupplyError, HostError) as fault:
        # The packages do not depend on it, and are written.
        if not changes:
            raise
        job.listener.note(f"Bazel's checksum stays open: {fault.what}")
        bazel = ""
    return Pinned(path, lists, tuple(changes), bazel)


def _check_requirement(where: str, line: str) -> None:
    """Raise RecipeError unless a person named a package, as an index knows it.

    `where` is the option that names it, or the recipe's list.
    """
    requirement = None
    # InvalidRequirement is a ValueError; brackets within brackets recurse.
    with suppress(ValueError, RecursionError):
        requirement = Requirement(line)
    # A pin is a version of an index, and the recipe's Python and system are known.
    if requirement is None or requirement.url or requirement.marker:
        option = f"{where} " if where.startswith("-") else ""
        raise RecipeError(
            f"{where} {line!r} must be a package and its versions, without an address or a "
            "condition",
            remedy=f"Write {option}numpy, {option}numpy==1.19.5 or {option}'numpy>=1.19,<2'.",
        )


@dataclass(frozen=True)
class _Unresolved:
    """What pip has to resolve for one list."""

    packages: list[str]
    preferred: list[str]
    """What was resolved before, and keeps its version if it is needed and still fits."""

    @classmethod
    def of(cls, named: Sequence[str], all_pins: Sequence[str], new: Sequence[str]) -> Self:
        direct = _merge_pins([line for line in named if not _is_open(line)], new)
        resolved = _pins_without(all_pins, direct)
        # Of a list that only the other document has, nothing says what a person wants: all stay.
        return cls(direct if named else [*map(packages.name_of, resolved), *direct], resolved)


def _pin_packages(
    job: RecipeJob,
    path: Path,
    wanted: Mapping[str, _Unresolved],
    direct: Mapping[str, Sequence[str]],
) -> dict[str, tuple[str, ...]]:
    """Write both lists with everything that their packages need."""
    wanted_python = job.recipe.host.python
    interpreter = pythons.find(wanted_python, job.host_file)
    if not interpreter:
        absence = pythons.absence(wanted_python, job.host_file)
        raise HostError(
            f"No target Python: {absence.found}; wanted is {absence.wanted}", remedy=absence.remedy
        )
    # The target Python resolves, since what a package needs depends on its version.
    version = pythons.version_of(interpreter)
    log = job.log("pin")
    lists: dict[str, tuple[str, ...]] = {}
    numpy = list[str]()
    bounds = _version_bounds(job)
    for key, each in wanted.items():
        # An empty list stays as it is: a recipe need not verify anything.
        if not each.packages:
            continue
        # The wheel is compiled against this numpy's C API, and may fail with an older one.
        lines = _merge_pins(each.packages, numpy)
        # What a person says of a version counts, and then what was resolved before.
        others = _pins_without(bounds, [line for line in lines if Requirement(line).specifier])
        first = [*each.preferred, *_pins_without(others, each.preferred)]
        try:
            lists[key] = resolving.resolve(interpreter, version, lines, log, first)
        except SupplyError:
            if not each.preferred:
                raise
            job.listener.note(f"The versions in {path.stem}{PINS} do not fit; pip chooses others")
            lists[key] = resolving.resolve(interpreter, version, lines, log, others)
        numpy = [line for line in lists[key] if packages.name_of(line) == "numpy"]
    # Write what a recipe names into its own lists, and what that needs next to it.
    resolved = {}
    for key, own in named_packages(recipe_values(path)).items():
        table, name = key.split(".")
        pins = lists.get(key, ())
        # A recipe that another one makes with its axes has no lists of its own; and of a list that
        # only the other document has, a few named ones would look like all that is wanted.
        alone = not own and getattr(job.recipe, table).requirements
        stated = (*own, *direct[key]) if path.is_file() and not alone else own
        names = {packages.name_of(line) for line in stated}
        kept = [pin for pin in pins if packages.name_of(pin) in names]
        # The author's layout of a list that stays as it is stays as well.
        if kept != own and path.is_file():
            toml_editing.put(path, (table, name), kept)
        resolved[table] = [pin for pin in pins if pin not in kept]
    place = path.with_suffix(PINS)
    if place.is_file() or any(resolved.values()):
        head = pins_head(place) if place.is_file() else PINS_HEAD.format(recipe=path.name)
        values = recipe_values(path)
        files.write(place, pins_text(head, values, resolved["host"], resolved["verify"]))
    return lists


def _version_bounds(job: RecipeJob) -> list[str]:
    """Return what is known of the versions that a TensorFlow works with.

    That is what setup.py of the pinned commit requires, where a repository on this host has it, and
    what its authors could not know yet.
    """
    source = job.recipe.source
    if not source.of_tensorflow:
        return []
    local = external.origin(job, source.url).local
    texts = {}
    if local and local.is_dir():
        texts = tree_files.unpatched_texts(local, source, tree_files.SETUPS)
    required = tree_files.required_packages(tree_files.setup_of(texts), job.recipe.host.python)
    bounds = [f"{one.name}{one.specifier}" for one in required if one.specifier]
    return [*bounds, *compatibility.package_bounds(str(source.exact))]


def _pins_without(pins: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the pins of packages that others do not name."""
    names = {packages.name_of(line) for line in others}
    return [line for line in pins if packages.name_of(line) not in names]


def _merge_pins(pins: Sequence[str], added: Sequence[str]) -> list[str]:
    """Return pins with requirements in the place of those of the same package."""
    return [*_pins_without(pins, added), *added]


def _pin_bazel(job: RecipeJob, path: Path) -> str:
    """Write the checksum of Bazel's binary for this machine, unless the recipe has it."""
    bazel, host = job.recipe.bazel, job.recipe.host
    # A recipe for another platform is never built by the Bazel of this one, and the checksum of
    # what this host has in place of the pinned version is not that version's.
    elsewhere = bazels.platform_name(host.system, host.machine) != bazels.platform_name()
    if (
        elsewhere
        or job.pinned_bazel
        or bazels.platform_name() in bazel.sha256
        or not path.is_file()
    ):
        return ""
    # No checksum is expected yet: this download is the one that sets it.
    host_binary = job.host_file.bazel(bazel.version)
    note = job.listener.note
    binary = bazels.obtain(
        bazel.version, {}, job.places.stores, given=host_binary, offline=job.offline, note=note
    )
    key = ("sha256", bazels.platform_name())
    why = f"from {binary.origin}, when it was pinned"
    toml_editing.put_dotted(path, "bazel", key, binary.sha256, why)
    return f"{bazels.platform_name()} {binary.sha256}"


def remove_open(values: dict[str, Any]) -> None:
    """Take those lines out, so that all else of a recipe is checked."""
    for key, lines in named_packages(values).items():
        if lines:
            table, name = key.split(".")
            values[table][name] = [line for line in lines if not _is_open(line)]


def _is_open(line: object) -> bool:
    # Anything else than a text is a fault, which reading the recipe describes.
    return isinstance(line, str) and not EXACT_PIN.fullmatch(line)
