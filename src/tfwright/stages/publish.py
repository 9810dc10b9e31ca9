"""Puts the wheel into the wheelhouse, and beside it the statement of where it comes from."""

import datetime as dt
import shutil
from pathlib import Path

from tfwright.results import Published, Verdict
from tfwright.stage import Artefact, Job
from tfwright.tools import files
from tfwright.wheel import archive, statement

REVISION = 2


def run(job: Job, verdict: Verdict) -> Published:
    """Copy the wheel that passed; whoever reads the wheelhouse sees the old one or the new one, whole."""
    wheel = verdict.wheel
    place = job.places.wheelhouse / wheel.path.name
    beside = place.with_name(place.name + statement.SUFFIX)
    text = _statement(verdict)
    if not place.exists() or _differs(job, place, wheel):
        with files.replacing(place) as temporary:
            shutil.copyfile(wheel.path, temporary)
            # Gone before the wheel that it is about: none is better than one about other bytes.
            files.remove(beside)
    files.write(beside, text)
    return Published(wheel=Artefact.of(place), statement=Artefact.of(beside))


def _differs(job: Job, place: Path, wheel: Artefact) -> bool:
    """Say whether the wheelhouse has other bytes under this name; that is worth a note."""
    before = files.sha256(place)
    if before != wheel.sha256:
        job.listener.note(f"{place.name} in the wheelhouse had other bytes (sha256 {before[:12]}…) and is replaced (by {wheel.sha256[:12]}…)")
    return before != wheel.sha256


def _statement(verdict: Verdict) -> bytes:
    """Return the provenance of the wheel, with all that verify saw it do."""
    wheel = verdict.wheel
    checks = [check.model_dump() for check in verdict.checks]
    with archive.opened(wheel.path) as content:
        return statement.write(content, wheel.path.name, wheel.sha256, checks, dt.datetime.now(dt.UTC))
