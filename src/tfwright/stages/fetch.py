"""Brings the source, Bazel and the target Python's packages in; after it a build needs no network."""

from collections.abc import Sequence

from tfwright.recipe import BazelTable, HostTable, SourceTable
from tfwright.results import HostFacts, Inputs, Programs
from tfwright.stage import Artefact, Job, Step
from tfwright.tools import bazel as bazels
from tfwright.tools import git, mirror, python
from tfwright.tools.mirror import Origin, Pin


def run(job: Job, source: SourceTable, bazel: BazelTable, wanted: HostTable, host: HostFacts) -> Inputs:
    """Obtain what is not there yet; everything is verified by commit or digest."""
    pin = _pin(source)
    repository = mirror.bring(pin, job.places.git, _origin(job, source), job.listener, offline=job.offline)
    foreign = wanted.system not in {"any", host.system}
    return Inputs(
        mirror=repository,
        commit=pin.commit,
        epoch=git.epoch(repository, pin.commit),
        programs=None if foreign else _programs(job, bazel, wanted, host),
    )


def _programs(job: Job, bazel: BazelTable, wanted: HostTable, host: HostFacts) -> Programs:
    """Obtain what runs during the build."""
    vault, given = job.places.vault, job.settings.bazels.get(bazel.version)
    binary = bazels.obtain(bazel.version, bazel.sha256, vault, given=given, offline=job.offline, note=job.listener.note)
    interpreter = python.venv(host.interpreter, wanted.requirements, vault, offline=job.offline, log=job.log("fetch-python"))
    return Programs(bazel=Artefact.of(binary.path), bazel_origin=binary.origin, python=interpreter)


def steps(job: Job) -> Sequence[Step]:
    """Return the transfer of the pinned commit, which is left out where the mirror has it."""
    pin = _pin(job.recipe.source)
    return (mirror.fetching(mirror.place(job.places.git, pin.url), pin),)


def _pin(source: SourceTable) -> Pin:
    return Pin(source.url, source.branch, source.commit, source.exclude)


def _origin(job: Job, source: SourceTable) -> Origin:
    return Origin.of(job.settings.mirror_of(source.url) or source.url)
