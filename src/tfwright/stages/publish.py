"""Puts the wheel into the wheelhouse."""

import shutil

from tfwright.results import Published, Verdict
from tfwright.stage import Artefact, Job
from tfwright.tools import files


def run(job: Job, verdict: Verdict) -> Published:
    """Copy the wheel that passed; whoever reads the wheelhouse sees the old one or the new one, whole."""
    wheel = verdict.wheel
    place = job.places.wheelhouse / wheel.path.name
    if place.exists():
        before = files.sha256(place)
        if before == wheel.sha256:
            return Published(wheel=Artefact.of(place))
        job.listener.note(f"{place.name} in the wheelhouse had other bytes (sha256 {before[:12]}…) and is replaced (by {wheel.sha256[:12]}…)")
    with files.replacing(place) as temporary:
        shutil.copyfile(wheel.path, temporary)
    return Published(wheel=Artefact.of(place))
