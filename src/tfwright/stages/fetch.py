"""Brings the source, Bazel and the target Python's packages in; after it a build needs no network."""

from collections.abc import Sequence

from tfwright.recipe import BazelTable, HostTable, SourceTable
from tfwright.results import HostFacts, Inputs
from tfwright.stage import Artefact, Job, Step
from tfwright.tools import bazel as bazels
from tfwright.tools import git, mirror, python
from tfwright.tools.mirror import Origin, Pin


def run(job: Job, source: SourceTable, bazel: BazelTable, wanted: HostTable, host: HostFacts) -> Inputs:
    """Obtain what is not there yet; everything is verified by commit or digest."""
    pin = _pin(source)
    repository = mirror.bring(pin, job.places.git, _origin(job, source), job.listener, offline=job.offline)
    binary = bazels.obtain(
        bazel.version, bazel.sha256, job.places.vault, given=job.settings.bazels.get(bazel.version), offline=job.offline, note=job.listener.note
    )
    return Inputs(
        mirror=repository,
        commit=pin.commit,
        epoch=git.epoch(repository, pin.commit),
        bazel=Artefact.of(binary.path),
        bazel_origin=binary.origin,
        python=python.venv(host.interpreter, wanted.requirements, job.places.vault, offline=job.offline, log=job.log("fetch-python")),
    )


def steps(job: Job) -> Sequence[Step]:
    """Return the transfer of the pinned commit, which is left out where the mirror has it."""
    pin = _pin(job.recipe.source)
    return (mirror.fetching(mirror.place(job.places.git, pin.url), pin),)


def _pin(source: SourceTable) -> Pin:
    return Pin(source.url, source.branch, source.commit, source.exclude)


def _origin(job: Job, source: SourceTable) -> Origin:
    return Origin.of(job.settings.mirrors.get(source.url, source.url))
