"""The site: packages, index, pointers and pages, made from the state and the builds.

Publishing is the same work after every start and every build; what is in place already is left
alone. The pointers come last: they never name anything that is not there.
"""

import datetime as dt
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tfwright.documents.nightly import NightlyFile
from tfwright.errors import RecipeError, WheelError
from tfwright.index import catalog, write
from tfwright.index.wheels import parse_name
from tfwright.index.write import EXTRAS, PACKAGES, IndexUpdate
from tfwright.nightly import gates
from tfwright.nightly.builds import NightlyBuild
from tfwright.nightly.state import KeptBuild, State
from tfwright.tools import batch as batches
from tfwright.tools import files, json_text
from tfwright.tools.process import file_lock

LOCK = "publishing"
"""One process at a time makes the site."""
POINTERS = "pointers"
NAMES = ("nightly", "stable", "last-good")
YANKED = "yanked.json"
"""File name of each yanked wheel to the reason, in the build host's directory."""


def publish(
    nightly: NightlyFile, state: State, now: dt.datetime, *, pages: bool = True
) -> IndexUpdate:
    """Bring the site up to date with the state.

    Waits while another process does that: a person may yank a wheel while a night runs.
    """
    with publishing(nightly.directory):
        return _publish(nightly, state, now, pages=pages)


def publishing(directory: Path) -> AbstractContextManager[None]:
    """Hold the lock on the site while it is made or cleared; a night holds its own for hours."""
    return file_lock.held(directory / LOCK, "publishing", wait=True)


def _publish(nightly: NightlyFile, state: State, now: dt.datetime, *, pages: bool) -> IndexUpdate:
    """Make the site from the state, as it is while the site is locked."""
    site = nightly.directory / "site"
    kept = state.builds()
    _place_wheels(site, kept)
    withdrawn = yanked(nightly.directory)
    notes = _notes(kept, withdrawn, state)
    statuses = {name: (table.status, table.reason) for name, table in nightly.projects.items()}
    update = write.refresh(site, notes, now, statuses=statuses)
    if pages and nightly.pages:
        from tfwright.nightly.pages import write_pages

        write_pages(nightly, state, site, now, withdrawn)
    offered = [build for build in kept if build.wheel not in withdrawn]
    _write_pointers(site, _pointers(offered, state, gated=nightly.reproduce))
    return update


def _write_pointers(site: Path, pointers: Iterator[tuple[str, bytes]]) -> None:
    """Write each pointer, and remove those that name nothing any more, as after a yank."""
    left = set(site.glob(f"{POINTERS}/*/*.json"))
    with batches.below(site) as batch:
        for place, content in pointers:
            batch.add(site / place, content)
            left.discard(site / place)
        batch.place()
    for pointer in left:
        pointer.unlink()


def unless_taken(site: Path, build: NightlyBuild) -> NightlyBuild:
    """Return the build; if its wheel's name stands for other bytes, with the reason in it."""
    if not build.wheel:
        return build
    # The catalog also knows the names of deleted wheels, which users may have pinned.
    with catalog.opened(site / PACKAGES) as known:
        taken = known.digests()
    try:
        catalog.refuse_other_bytes(taken, build.wheel, build.sha256)
    except WheelError as fault:
        return build.model_copy(update={"unpublished": f"{fault.what}. {fault.remedy}"})
    return build


def yanked(directory: Path) -> dict[str, str]:
    """Return the yanked wheels of a build host, each with its reason."""
    try:
        found = json_text.parsed(files.content(directory / YANKED))
    except FileNotFoundError:
        return {}
    except ValueError as fault:
        raise _unusable(directory / YANKED, str(fault)) from fault
    if not isinstance(found, dict):
        raise _unusable(directory / YANKED, "it is not an object of file names and reasons")
    return {str(name): str(reason) for name, reason in found.items()}


def _unusable(file: Path, why: str) -> RecipeError:
    return RecipeError(
        f"{file} cannot be used: {why}",
        remedy="Correct the file, or delete it to take back every yank.",
    )


def _is_listed(directory: Path, filename: str) -> bool:
    try:
        parse_name(filename)
    except WheelError:
        # A name that is not one of a wheel could lead out of the folder.
        return False
    return (directory / "site" / PACKAGES / filename).is_file()


def yank(directory: Path, filename: str, reason: str | None) -> None:
    """Yank a wheel with a reason, or take the yank back with None.

    Raises WheelError if the index has no such wheel.
    """
    if not _is_listed(directory, filename):
        raise WheelError(
            f"The index has no wheel {filename}",
            remedy="Give the whole file name, as the index lists it.",
        )
    # Two yanks at once would otherwise forget one of them.
    with publishing(directory):
        known = yanked(directory)
        known.pop(filename, None)
        if reason is not None:
            known[filename] = reason
        text = json.dumps(known, indent=1, sort_keys=True) + "\n"
        files.write(directory / YANKED, text)


def _place_wheels(site: Path, kept: Sequence[KeptBuild]) -> None:
    """Put the wheels that are listed into their folder, unless they are there."""
    # One look at the folder: a host may have thousands of wheels.
    placed = {path.name for path in (site / PACKAGES).glob("*.whl")}
    for item in kept:
        if item.listed and item.wheel not in placed:
            _place_wheel(site, item)


def _place_wheel(site: Path, build: KeptBuild) -> None:
    """Link a build's wheel, and what describes it, into the folder that the index lists."""
    source = site / "builds" / build.id / build.wheel
    target = site / PACKAGES / build.wheel
    if target.exists() or not source.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    # The wheel comes last: the index lists it only when all about it is there.
    for suffix in (*EXTRAS, ""):
        described = source.with_name(source.name + suffix)
        if described.exists():
            _link(described, target.with_name(target.name + suffix))


def _link(source: Path, target: Path) -> None:
    """Give a file a second name; where the file system has no links, copy it."""
    target.unlink(missing_ok=True)
    # A wheel of half a gigabyte is not stored twice.
    try:
        os.link(source, target)
    except OSError:
        with files.replacing(target) as temporary:
            shutil.copyfile(source, temporary)


def _notes(
    kept: list[KeptBuild], withdrawn: Mapping[str, str], state: State
) -> dict[str, dict[str, object]]:
    """Return what the index shows of each wheel beyond what is in the file."""
    reproduced = gates.reproductions(state)
    notes: dict[str, dict[str, object]] = {}
    for build in kept:
        if not build.listed:
            continue
        notes[build.wheel] = {
            "recipe": build.target,
            "build": build.id,
            "state": "reproduced" if build.id in reproduced else build.tested,
            "yanked": withdrawn.get(build.wheel),
            "hidden": build.hidden is not None,
            "needs": build.needs,
        }
    # Their files go only after no page lists them.
    for _, wheel in state.gone():
        notes.setdefault(wheel, {"hidden": True})
    return notes


def _pointers(kept: list[KeptBuild], state: State, *, gated: bool) -> Iterator[tuple[str, bytes]]:
    """Yield each pointer's path below the site and its content."""
    reproduced = gates.reproductions(state)
    for target, own in gates.by_target(kept).items():
        for name, build in gates.pointed(own, reproduced, gated=gated).items():
            content = {
                "build": build.id,
                "url": f"../../builds/{build.id}/",
                "wheel": build.wheel,
                "version": build.version,
                "sha256": build.sha256,
                "started": build.started.isoformat(),
            }
            text = json.dumps(content, indent=1)
            yield f"{POINTERS}/{target}/{name}.json", text.encode()
