"""`invoke reproduce`: a wheel made again from nothing, elsewhere: the same bytes, or why not."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from tfwright.documents.host_file import HostFile
from tfwright.errors import RecipeError, WheelError
from tfwright.host import probes, pythons
from tfwright.pipeline import containers, engine, host_facts, stamps
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Inputs, Published, SealedWheel
from tfwright.tools import files
from tfwright.tools.process import isolation
from tfwright.wheel import archive
from tfwright.wheel.compare import comparison
from tfwright.wheel.compare.comparison import Comparison
from tfwright.wheel.seal import build_record, sealing
from tfwright.wheel.seal.build_record import BuildRecord, Found

FOLDER = "reproduction"
"""The other directory, below build_out: a different path, of a different length."""
UMASK = 0o077
"""Different from the usual 022, so that file modes that reach the wheel show."""
TIME = re.compile(
    r"\b(\d{4}-\d\d-\d\d|(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2}\b"
    r"|\d\d:\d\d:\d\d|1[5-9]\d{8})\b"
)
"""A date or a time as programs write it, or seconds since 1970."""


@dataclass(frozen=True)
class Reproduction:
    """The result of building a wheel a second time."""

    original: Path
    rebuilt: Path
    comparison: Comparison
    causes: tuple[str, ...] = ()
    """Why they differ, as far as the differences and the control builds tell."""


def reproduce(job: RecipeJob, original: Path, *, cached: bool, control: bool) -> Reproduction:
    """Build the job's recipe again elsewhere, under another umask, and compare it with `original`.

    Nothing is downloaded. With `cached`, the build cache takes part, which proves less and takes
    less time. Where the wheels differ and `control` is set, it is built once or twice more, in the
    same place and with address-space randomisation off. Raises what a build raises.
    """
    elsewhere = _relocate_job(job, cached=cached)
    changes = host_changes(job, original)
    # Noted before the build, which may take hours: a person can stop and mend the host first.
    for change in changes:
        job.listener.note(f"differs from when the wheel was made: {change}")
    rebuilt = _build(elsewhere, "rebuilt", fixed=False)
    found = comparison.compare(original, rebuilt)
    if found.same:
        return Reproduction(original, rebuilt, found)
    # Weakest evidence first: what may explain it, what the bytes show, what a build proved.
    causes = [f"Perhaps because of this host: {change}" for change in changes]
    causes += _visible_causes(found, job, elsewhere)
    without = "No control build was made, so chance and the place cannot be distinguished"
    causes.append(_build_controls(elsewhere, rebuilt) if control else without)
    return Reproduction(original, rebuilt, found, tuple(causes))


def rebuild(job: RecipeJob) -> Path:
    """Build the job's recipe again elsewhere, without the cache; return the wheel.

    Without a wheel to compare with: another host may have built it. Raises what a build raises.
    """
    return _build(_relocate_job(job, cached=False), "rebuilt", fixed=False)


def published_wheel(job: RecipeJob) -> Path:
    """Return the wheel that the recipe's last build put into the wheelhouse.

    Raises RecipeError if the wheelhouse has none.
    """
    result = stamps.last_result(job, "publish", Published)
    if result is None or not result.wheel.path.is_file():
        raise RecipeError(
            f"The wheelhouse has no wheel of {job.recipe.name} to compare with",
            remedy=f"Run 'invoke build --recipe {job.argument}' first, or name a wheel.",
        )
    return result.wheel.path


def recipe_of_wheel(wheel: Path) -> str:
    """Return the name of the recipe in a wheel's build record.

    Raises WheelError if the wheel is missing, or has no record.
    """
    record = _record(wheel)
    if record is None:
        what = f"{wheel.name} has no build record: it is not from tfwright"
        raise WheelError(
            what, remedy="Name the recipe that should make it with --recipe.", where=wheel
        )
    return record.recipe.name


def check_unchanged(job: RecipeJob, original: Path) -> None:
    """Raise RecipeError naming all that changed in this checkout since the wheel was made.

    A wheel without a record is compared as it is.
    """
    record = _record(original)
    # Another recipe builds another wheel, so a comparison would say nothing.
    lines = _changed_inputs(job, record) if record else []
    if lines:
        name = job.recipe.name
        what = f"{original.name} was made from another recipe than {name} is now: {lines[0]}"
        remedy = (
            "Check out the recipe and patches of that time, "
            f"or build it as it is now: 'invoke build --recipe {job.argument}'."
        )
        raise RecipeError(what, remedy=remedy, where=original, lines=lines)


def host_changes(job: RecipeJob, original: Path) -> list[str]:
    """Say in what this host and its programs differ from those that the wheel's record names.

    That may explain a later difference. Empty for a wheel without a record, and where the target
    Python is missing, which the build itself refuses.
    """
    record = _record(original)
    if record is None:
        return []
    # Compiler and Python of a recipe with an image are the image's.
    with containers.stage_container(job, "check"):
        interpreter = pythons.find(job.recipe.host.python, job.host_file)
        if interpreter is None:
            return []
        facts = host_facts.facts(job.recipe, job.host_file, probes.this_host(), interpreter)
    here = host_facts.for_record(job.recipe, job.host_file, facts)
    pairs: dict[str, tuple[object, object]] = {
        name: (getattr(record.found, name), getattr(here, name)) for name in Found.model_fields
    }
    sealer = sealing.this_sealer()
    # Another version of the compressor packs the same files into other bytes.
    pairs["deflate"] = record.sealer.deflate, sealer.deflate
    pairs["tfwright"] = record.sealer.version, sealer.version
    inputs = stamps.last_result(job, "fetch", Inputs)
    # Only a fetch on this host knows which Bazel binary it would run.
    if inputs and inputs.programs:
        pairs["Bazel's sha256"] = record.bazel.sha256, inputs.bazel.sha256
    return [
        f"{name}: {then or 'none'} then, {now or 'none'} here"
        for name, (then, now) in pairs.items()
        if then != now
    ]


def _record(wheel: Path) -> BuildRecord | None:
    """Return a wheel's build record, if it has one."""
    archive.check_exists(wheel)
    with archive.open_wheel(wheel) as content:
        return build_record.read(content)


def _changed_inputs(job: RecipeJob, record: BuildRecord) -> list[str]:
    """Name the keys of the recipe, the patches and assets, and the lock that are others now."""
    source = job.recipe.source
    before = _inputs_by_name(
        record.recipe.content, {file.path: file.sha256 for file in record.files}, record.lock
    )
    now = _inputs_by_name(
        build_record.recipe_content(job.recipe).content,
        {path: files.sha256(source.file(path)) for path in source.named_files},
        # A recipe without a lock file must have been built without one as well.
        files.sha256(job.locked) if job.locked else None,
    )
    return sorted(name for name in before | now if before.get(name) != now.get(name))


def _inputs_by_name(
    content: Mapping[str, object], digests: Mapping[str, str], lock: str | None
) -> dict[str, object]:
    """Return all that decides a wheel by names that a person knows."""
    found: dict[str, object] = {f"patches/{path}": digests[path] for path in digests}
    found["the recipe's lock"] = lock
    for name, table in content.items():
        # A part such as `summary` is not a table, and has no keys to name.
        for key, value in table.items() if isinstance(table, dict) else [("", table)]:
            found[f"the recipe's {name} {key}".rstrip()] = value
    return found


def relocate(host_file: HostFile, folder: str) -> HostFile:
    """Return a host file for builds below another directory, with the same inputs and cache."""
    place = host_file.build_out / folder
    place.mkdir(parents=True, exist_ok=True)
    # Downloads and clones are checked by checksum and commit, so both places may share them.
    for name in ("vault", "git"):
        shared, link = host_file.build_out / name, place / name
        shared.mkdir(parents=True, exist_ok=True)
        # One that leads there stays: a build of another recipe may be reading through it.
        if not (link.is_symlink() and link.readlink() == shared):
            files.remove(link)
            link.symlink_to(shared, target_is_directory=True)
    # Both default to places in build_out, which is another one there.
    own = {"directory": host_file.cache_directory, "secret": host_file.cache_secret}
    return host_file.changed(build_out=place, cache=host_file.cache.changed(**own))


def _relocate_job(job: RecipeJob, *, cached: bool) -> RecipeJob:
    """Return the job that builds elsewhere, with the same inputs and without a network."""
    own = relocate(job.host_file, FOLDER)
    own = own.changed(cache=own.cache.changed(enabled=cached))
    # Up to the seal: publishing would put the second wheel in the place of the original.
    return replace(job, host_file=own, offline=True, until="seal")


def _build(job: RecipeJob, name: str, *, fixed: bool) -> Path:
    """Build from nothing, under another umask; return a copy of the wheel that stays.

    `fixed` turns address-space randomisation off.
    """
    how = ", with address-space randomisation off" if fixed else ""
    job.listener.note(f"building in {job.places.own}{how}")
    before = os.umask(UMASK)
    try:
        with isolation.fixed_addresses() if fixed else nullcontext():
            made = engine.build(replace(job, fresh=True)).of(SealedWheel)
    finally:
        os.umask(before)
    # The next build of this job writes over the wheel, so keep a copy of it.
    folder = job.places.build_out / "wheels" / job.recipe.name / name
    files.remove(folder)
    folder.mkdir(parents=True)
    return Path(shutil.copyfile(made.wheel.path, folder / made.wheel.path.name))


def _build_controls(job: RecipeJob, rebuilt: Path) -> str:
    """Build again in the same place at fixed addresses, and once more if that differs.

    Return what the builds show.
    """
    if why := isolation.address_obstacle():
        return f"Address-space randomisation stays on, since {why}: no control build was made"
    digest = files.sha256(rebuilt)
    # The control repeats everything but the addresses. If it gives the same wheel, what differs
    # from the original is what the two places differ in.
    first = _build(job, "control", fixed=True)
    if files.sha256(first) == digest:
        return (
            "Built again in the same place it is the same: not chance, but the directory, the "
            "umask, the day or another change of this host since"
        )
    # Only two builds at fixed addresses can show that the addresses were the cause.
    second = _build(job, "control-again", fixed=True)
    if files.sha256(second) == files.sha256(first):
        return (
            "It varies with address-space randomisation: at fixed addresses two builds are the "
            "same. Something is sorted, or hashed, by address"
        )
    differences = comparison.compare(first, second).differences
    again = {difference.member or difference.group for difference in differences}
    return (
        "Every build differs, also at fixed addresses: a clock, random numbers, or the order of "
        f"parallel work. Again in: {', '.join(sorted(again))}"
    )


def _visible_causes(found: Comparison, job: RecipeJob, elsewhere: RecipeJob) -> Iterator[str]:
    """Say what the differences themselves give away."""
    directories = str(elsewhere.places.build_out), str(job.places.build_out)
    for difference in found.differences:
        where = difference.member or difference.group
        if any(text in line for line in difference.lines for text in directories):
            yield f"{where} holds the directory that it was built in"
        # The group "time" is about the zip's own dates, which are always written as such.
        dated = any(TIME.search(line) for line in difference.lines)
        if difference.group != "time" and dated:
            yield f"{where} seems to hold the time of the build"
