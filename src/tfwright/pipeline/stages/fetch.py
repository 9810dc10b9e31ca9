"""Brings the source, what its rules download, Bazel and the target Python's packages in; after it a build needs no network."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tfwright.documents.recipe import (
    PATCHES,
    BazelTable,
    FetchTable,
    HostTable,
    SourceTable,
    VerifyTable,
)
from tfwright.errors import Evidence, SupplyError
from tfwright.pipeline.results import Copied, HostFacts, Inputs, Programs, Substituted
from tfwright.pipeline.stage import Artefact, Job, Step, Writes
from tfwright.pipeline.stages import source as sources
from tfwright.progress import SILENCE, Progress
from tfwright.rules import repositories
from tfwright.rules.repositories import Rules
from tfwright.tools import files, git
from tfwright.tools.bazel import binary as bazels
from tfwright.tools.bazel import workspaces
from tfwright.tools.git import clones, mirror
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.mirror import Origin, Pin
from tfwright.tools.python import packages, venv
from tfwright.vault import lock, locking, origins, reach, substitutes
from tfwright.vault.lock import Lock
from tfwright.vault.origins import Origins
from tfwright.vault.reach import Reached, Suppliers
from tfwright.vault.shortage import Shortage
from tfwright.vault.store import Store

REVISION = 2


def run(
    job: Job,
    source: SourceTable,
    bazel: BazelTable,
    wanted: HostTable,
    fetch: FetchTable,
    verify: VerifyTable,
    host: HostFacts,
) -> Inputs:
    """Obtain what is not there yet; everything is verified by commit or digest."""
    pin = _pin(source)
    repository = mirror.bring(
        pin, job.places.git, _origin(job, source.url), job.listener, offline=job.offline
    )
    locked = lock.read(job.locked) if job.locked else None
    foreign = wanted.system not in {"any", host.system}
    programs = (
        None
        if foreign
        else _programs(job, bazel, locking.pinned(wanted.requirements, locked), host)
    )
    if programs and (pins := [*verify.requirements, *verify.plugins]):
        packages.supply(
            programs.python,
            pins,
            job.places.vault,
            job.log("fetch-packages"),
            offline_only=job.offline,
        )
    reached = archives(job, repository, programs, locked)
    if locked and job.locked:
        _insist_on_lock(job, job.locked, locked, now(job, repository, reached, programs))
    return Inputs(
        mirror=repository,
        commit=pin.commit,
        epoch=git.epoch(repository, pin.commit),
        programs=programs,
        archives=_artefacts(store(job), reached),
        clones=tuple(
            Copied(remote=one.remote, commit=one.commit, repository=repository)
            for one, repository in sorted(reached.clones.items())
        ),
        substitutes=tuple(_substituted(job, reached.rules)),
    )


def _programs(
    job: Job, bazel: BazelTable, requirements: Sequence[str], host: HostFacts
) -> Programs:
    """Obtain what runs during the build."""
    vault, given = job.places.vault, job.host_file.bazels.get(bazel.version)
    binary = bazels.obtain(
        bazel.version, bazel.sha256, vault, given=given, offline=job.offline, note=job.listener.note
    )
    interpreter = venv.venv(
        host.interpreter, requirements, vault, offline=job.offline, log=job.log("fetch-python")
    )
    return Programs(bazel=Artefact.of(binary.path), bazel_origin=binary.origin, python=interpreter)


def read(job: Job, repository: Path, programs: Programs | None) -> Rules:
    """Read the rules of the pinned commit as the recipe's patches leave them, and those of Bazel itself; no file is checked out."""
    tree = job.places.own / "reading"
    content = sources.patched(tree, job.recipe.source, repository, job.recipe.source.commit)
    found = repositories.read(sources.texts(tree, job.recipe.source, content))
    files.remove(tree)
    files.remove(git.repository_of(tree))
    return (
        found + repositories.of_bazel(workspaces.workspaces(programs.bazel.path))
        if programs
        else found
    )


def store(job: Job) -> Store:
    """Return where the compile stage lets Bazel look before it downloads."""
    return Store(job.places.vault / "repository_cache")


def archives(job: Job, repository: Path, programs: Programs | None, locked: Lock | None) -> Reached:
    """Bring what the rules lead to into the vault.

    Without a lock nobody knows yet what Bazel will want, so that what cannot be had is only noted.
    Raises SupplyError naming all that is known to be needed and cannot be had.
    """
    ways = Origins(job.host_file, job.places.git, job.offline, job.recipe.fetch)
    found, tables = read(job, repository, programs), job.recipe.fetch.substitutes
    substitutes.insist(tables, found.repositories)
    obtain = partial(origins.obtain, store=store(job), origins=ways, report=job.listener.progress)
    reached = reach.bring(
        found,
        tables,
        locked,
        store(job),
        Suppliers(obtain, partial(clone, job, offline=job.offline)),
    )
    missing, refused = reached.needed_and_missing(locked), reached.needed_and_refused(locked)
    if missing or refused:
        shortage = Shortage(job.recipe.name, missing, refused)
        raise shortage.error(job.host_file, job.log("fetch-missing"))
    for text in reached.notes():
        job.listener.note(text)
    if tables:
        job.listener.note(
            f"Not the pinned bytes, for the reasons that the recipe states: {', '.join(sorted(tables))}"
        )
    return reached


def clone(job: Job, wanted: Clone, *, offline: bool) -> Path:
    """Bring a commit that a rule clones to this host, and return its repository."""
    if not offline:
        job.listener.progress(Progress(0, 1, "commits", wanted.remote))
    return clones.bring(wanted, job.places.git, _origin(job, wanted.remote), offline=offline)


def now(
    job: Job,
    repository: Path,
    reached: Reached,
    programs: Programs | None,
    wanted: Mapping[str, str] | None = None,
) -> Lock:
    """Return the lock that fits what the inputs are now; `wanted` are the repositories that Bazel was seen to want."""
    source = job.recipe.source
    gathered = lock.Gathered(
        tree=git.tree_of(repository, source.commit),
        binaries=locking.binaries(
            job.recipe.bazel.version, programs.bazel.path, programs.bazel.sha256
        )
        if programs
        else {},
        files={
            file: files.sha256(PATCHES / file)
            for file in (*source.patches, *source.assets.values())
        },
        sizes=store(job).sizes(),
        wanted=wanted,
        substitutes=locking.substitutes(
            job.recipe.fetch.substitutes,
            {one.name: one.sha256 for one in _substituted(job, reached.rules)},
        ),
    )
    return lock.of(job.recipe, reached.rules, gathered)


def known(job: Job, inputs: Inputs) -> Lock:
    """Return the lock that would fit what was brought for a recipe that has none; nothing is downloaded, and nothing said."""
    quiet = replace(job, offline=True, listener=SILENCE)
    return now(
        quiet, inputs.mirror, archives(quiet, inputs.mirror, inputs.programs, None), inputs.programs
    )


def _insist_on_lock(job: Job, path: Path, locked: Lock, found: Lock) -> None:
    """Refuse an input that is not the one that was locked."""
    requirements = found.model_copy(update={"requirements": locked.requirements})
    wrong = [
        *lock.differences(locked, requirements),
        *locking.unlocked(job.recipe.host.requirements, locked),
    ]
    if wrong:
        raise SupplyError(
            f"{path.name} does not fit the inputs: {wrong[0]}"
            + (f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""),
            remedy=f"If the change is meant, run 'invoke lock --recipe {job.recipe.name}' and look at the difference.",
            evidence=Evidence(where=str(path), lines=wrong),
        )


def _artefacts(kept: Store, reached: Reached) -> tuple[Artefact, ...]:
    """Return what is in the vault; each was hashed in this run, and is not hashed again."""
    paths = {sha256: kept.path(sha256) for sha256 in sorted(reached.supply.ways)}
    return tuple(
        Artefact(path=path, sha256=sha256, size=path.stat().st_size)
        for sha256, path in paths.items()
    )


def _substituted(job: Job, found: Rules) -> list[Substituted]:
    tables = job.recipe.fetch.substitutes
    pinned = {name: substitutes.replaced(name, found.repositories).sha256 for name in tables}
    return [
        Substituted(name=name, reason=table.reason, sha256=pinned[name], used=table.sha256)
        for name, table in sorted(tables.items())
    ]


def inputs(job: Job) -> Mapping[str, str]:
    """Return the digests of the lock, and of the patches, which can change rules."""
    return {
        **sources.inputs(job),
        **({job.locked.name: files.sha256(job.locked)} if job.locked else {}),
    }


def steps(job: Job) -> Sequence[Step]:
    """Return the transfer of the pinned commit, which is left out where the mirror has it, and what stands in for an archive."""
    pin = _pin(job.recipe.source)
    substituted = job.recipe.fetch.substitutes.items()
    return (
        mirror.fetching(mirror.place(job.places.git, pin.url), pin),
        *(
            Writes(store(job).path(table.sha256), f"Not the pinned bytes: {name}: {table.reason}")
            for name, table in substituted
        ),
    )


def _pin(source: SourceTable) -> Pin:
    return Pin(source.url, source.branch, source.commit, source.exclude)


def _origin(job: Job, url: str) -> Origin:
    return Origin.of(job.host_file.mirror_of(url) or url)
