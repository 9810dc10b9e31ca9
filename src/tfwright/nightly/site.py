"""The site: packages, index, pointers and pages, made from the state and the builds.

Publishing is the same work after every start and every build; what is in place already is left
alone. The pointers come last: they never name anything that is not there.
"""

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from tfwright.documents import faults
from tfwright.documents.nightly import NightlyFile
from tfwright.errors import RecipeError, ToolError, WheelError
from tfwright.index import wheels, write
from tfwright.index.wheels import SAFE_NAME
from tfwright.index.write import EXTRAS, PACKAGES, IndexUpdate
from tfwright.nightly import state as states
from tfwright.nightly import status
from tfwright.nightly.builds import NightlyBuild
from tfwright.nightly.state import KeptBuild, State
from tfwright.tools import batch as batches
from tfwright.tools import files
from tfwright.tools.process import file_lock, pipes
from tfwright.tools.redaction import redact_text

LOCK = "publishing"
"""One process at a time makes the site."""
POINTERS = "pointers"
COPY_SECONDS = 3600.0
"""Until a copy of the site is given up: wheels are large, and lines slow."""
YANKED = "yanked.json"
"""File name of each yanked wheel to the reason, in the build host's directory."""
_YANKS = TypeAdapter(dict[str, str])


def publish(
    nightly: NightlyFile, state: State, now: dt.datetime, *, pages: bool = True, ended: bool = False
) -> IndexUpdate:
    """Bring the site up to date with the state; `ended` says that this ends the night.

    Waits while another process does that: a person may yank a wheel while a night runs.
    """
    with publishing(nightly.directory):
        site = nightly.site
        kept = state.builds()
        _link_wheels(site, kept)
        withdrawn = yanked_wheels(nightly.directory)
        statuses = {
            name: (table.status, redact_text(table.reason))
            for name, table in nightly.projects.items()
        }
        update = write.refresh(site, _wheel_notes(kept, withdrawn, state), now, statuses=statuses)
        if pages and nightly.pages:
            from tfwright.nightly.pages import site as site_pages

            site_pages.write(nightly, state, now, withdrawn, ended=ended)
        offered = [build for build in kept if build.wheel not in withdrawn]
        _write_pointers(site, status.pointers(nightly, state, offered))
        return update


def show_queue(nightly: NightlyFile, state: State, now: dt.datetime) -> None:
    """Write the first page as it is now, with what the night under way builds."""
    if nightly.pages:
        from tfwright.nightly.pages import site as site_pages

        with publishing(nightly.directory):
            site_pages.write(nightly, state, now, yanked_wheels(nightly.directory), only_first=True)


def refresh(nightly: NightlyFile) -> IndexUpdate:
    """Bring the site up to date as it is now, for a person who asks for it."""
    with states.open_state(nightly.directory) as state:
        update = publish(nightly, state, dt.datetime.now(dt.UTC))
    copy(nightly)
    return update


def copy(nightly: NightlyFile) -> None:
    """Run the program that copies the site elsewhere; raise ToolError if it fails."""
    if nightly.publish:
        with publishing(nightly.directory):
            try:
                pipes.run_with_input(nightly.publish, "", COPY_SECONDS, cwd=nightly.site)
            except ToolError as fault:
                remedy = (
                    "Run it in the folder of the site; the next update of the site runs it again."
                )
                what = f"'{nightly.publish[0]}' of publish in nightly.toml failed"
                raise ToolError(what, remedy=remedy, evidence=fault.evidence) from fault


def publishing(directory: Path) -> AbstractContextManager[None]:
    """Hold the lock on the site while it is made or cleared; a night holds its own for hours."""
    return file_lock.locked(directory / LOCK, "publishing", wait=True)


def _write_pointers(site: Path, pointers: Mapping[str, Mapping[str, KeptBuild]]) -> None:
    """Write each pointer, and remove those that name nothing any more, as after a yank."""
    left = set(site.glob(f"{POINTERS}/*/*.json"))
    with batches.file_batch(site) as batch:
        for target, own in pointers.items():
            for name, build in own.items():
                content = {
                    "build": build.id,
                    "url": f"../../builds/{build.id}/",
                    "wheel": build.wheel,
                    "version": build.version,
                    "sha256": build.sha256,
                    "started": build.started.isoformat(),
                }
                place = site / POINTERS / target / f"{name}.json"
                batch.add(place, json.dumps(content, indent=1).encode())
                left.discard(place)
        batch.place()
    for pointer in left:
        pointer.unlink()


def with_refusal(site: Path, build: NightlyBuild, work: Path) -> NightlyBuild:
    """Return the build in `work`; if the index would refuse its wheel, with the reason in it."""
    if not build.wheel:
        return build
    # The catalog also knows the names of deleted wheels, which users may have pinned.
    taken = wheels.Catalog.read(site / PACKAGES).digests
    try:
        listed, _ = wheels.read_wheel(work / build.wheel, "")
        wheels.refuse_other_bytes(taken, build.wheel, listed.sha256)
    except WheelError as fault:
        return build.model_copy(update={"unpublished": f"{fault.what}. {fault.remedy}"})
    return build


def yanked_wheels(directory: Path) -> dict[str, str]:
    """Return the yanked wheels of a build host, each with its reason as strangers may read it."""
    file = directory / YANKED
    try:
        found = _YANKS.validate_json(files.content(file))
    except FileNotFoundError:
        return {}
    except ValidationError as fault:
        raise RecipeError(
            f"{file} cannot be used: {faults.first_line(fault)}",
            remedy="Correct the file, or delete it to take back every yank.",
        ) from fault
    return {name: redact_text(reason) for name, reason in found.items()}


def yank(directory: Path, filename: str, reason: str | None) -> None:
    """Yank a wheel with a reason, or take the yank back with None.

    Raises RecipeError if the index has no such wheel.
    """
    # A name that is not one of a wheel could lead out of the folder.
    sound = SAFE_NAME.fullmatch(filename)
    if not (sound and (directory / "site" / PACKAGES / filename).is_file()):
        raise RecipeError(
            f"The index has no wheel {filename}",
            remedy="Give the whole file name, as the index lists it.",
        )
    # Two yanks at once would otherwise forget one of them.
    with publishing(directory):
        known = yanked_wheels(directory)
        known.pop(filename, None)
        if reason is not None:
            known[filename] = reason
        files.write(directory / YANKED, json.dumps(known, indent=1, sort_keys=True) + "\n")


def _link_wheels(site: Path, kept: Sequence[KeptBuild]) -> None:
    """Link the wheels that are listed, and what describes them, into the folder of the index."""
    folder = site / PACKAGES
    folder.mkdir(parents=True, exist_ok=True)
    # One look at the folder: a host may have thousands of wheels.
    placed = {path.name for path in folder.glob("*.whl")}
    for build in kept:
        source = site / "builds" / build.id / build.wheel
        if not build.listed or build.wheel in placed or not source.exists():
            continue
        placed.add(build.wheel)
        # The wheel comes last: the index lists it only when all about it is there.
        for suffix in (*EXTRAS, ""):
            described = source.with_name(source.name + suffix)
            if described.exists():
                files.link(described, folder / described.name)


def _wheel_notes(
    kept: Sequence[KeptBuild], withdrawn: Mapping[str, str], state: State
) -> dict[str, dict[str, object]]:
    """Return what the index shows of each wheel beyond what is in the file."""
    reproduced = state.reproduced()
    notes: dict[str, dict[str, object]] = {
        build.wheel: {
            "recipe": build.target,
            "build": build.id,
            "state": "reproduced" if build.id in reproduced else build.tested,
            "yanked": withdrawn.get(build.wheel),
            "hidden": build.hidden is not None,
            "needs": build.needs,
        }
        for build in kept
        if build.listed
    }
    # Their files go only after no page lists them.
    for _, wheel in state.deleted():
        notes.setdefault(wheel, {"hidden": True})
    return notes
