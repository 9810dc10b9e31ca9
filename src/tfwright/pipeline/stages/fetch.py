"""Fetches the source, what its rules download, Bazel and the target Python's packages.

After it a build needs no network.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.documents.recipe import (
    BazelTable,
    CompileTable,
    ConfigureTable,
    FetchTable,
    HostTable,
    SourceTable,
    VerifyTable,
)
from tfwright.errors import Evidence, SupplyError
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Copied, HostFacts, Inputs, Programs
from tfwright.pipeline.stage import Artefact, Folder, Step, Writes
from tfwright.printable import first_of
from tfwright.tools import files, json_text, trees
from tfwright.tools.git.repository import GitRepository

if TYPE_CHECKING:
    from tfwright.vault.lock import Lock


REVISION = 8


def run(
    job: Job,
    source: SourceTable,
    bazel: BazelTable,
    wanted: HostTable,
    fetch: FetchTable,
    verify: VerifyTable,
    configure: ConfigureTable,
    compile: CompileTable,  # noqa: A002 the table's name
    host: HostFacts,
) -> Inputs:
    """Obtain what is not there yet; everything is verified by commit or digest."""
    from tfwright.host import hermetic
    from tfwright.pipeline import external
    from tfwright.pipeline.external import ExternalRules, RecipePins
    from tfwright.rules import listings, tree_files
    from tfwright.tools.python import packages
    from tfwright.vault import bundle, lock

    bundle.discard_leftovers(job.places.build_out)
    # CUDA and Python are chosen by the answers, and by flags.
    environment = hermetic.environment(source, wanted, configure, compile)
    pins = RecipePins(source, bazel, fetch, environment)
    repository = external.fetch_commit(job, source, about_branch=True)
    tree_files.check_release(repository, source.commit, source)
    locked = lock.read(job.locked) if job.locked else None
    # Of a recipe for another system, what its rules download can be fetched and locked here. Its
    # Bazel and Python would not run, so they are left to that host.
    foreign = wanted.system not in {"any", host.system}
    if job.pinned_bazel:
        job.listener.note(
            f"This host builds with Bazel {bazel.version} in place of the pinned {job.pinned_bazel}"
        )
    epoch = GitRepository(repository).epoch(source.commit)
    if not job.wants_archives:
        job.listener.note(f"Archives are left to 'invoke fetch --recipe {job.argument}'")
        starts = ExternalRules(job, pins, repository).starts if fetch.substitutes else ()
        return Inputs(
            mirror=repository,
            commit=source.commit,
            epoch=epoch,
            programs=None if foreign else obtain_programs(job, bazel, wanted, locked, host),
            # As if each were needed: whether one is, the search for the pinned archive says.
            substitutes={name: table.replaces or "" for name, table in fetch.other_bytes.items()},
            starts=starts,
            whole=False,
        )
    stores, log = job.places.stores, job.log("fetch-packages")
    lacking: list[SupplyError] = []
    programs = None
    try:
        programs = None if foreign else obtain_programs(job, bazel, wanted, locked, host)
        # What the wheel requires: the stage verify installs it without a network.
        requirements = [*verify.requirements, *verify.plugins]
        if programs and requirements:
            packages.supply(programs.python, requirements, stores, log, offline_only=job.offline)
    except SupplyError as fault:
        lacking.append(fault)
    # Also without a Bazel: all that is missing is named at once.
    try:
        here = ExternalRules(job, pins, repository, programs).without_unneeded(locked)
        reached = here.fetch(locked)
    except SupplyError as fault:
        raise _combined_error([*lacking, fault]) from fault
    installed = listings.pip_pins(reached.rules, here.environment)
    if programs and installed:
        try:
            packages.supply(programs.python, installed, stores, log, offline_only=job.offline)
        except SupplyError as fault:
            lacking.append(fault)
    if lacking:
        raise _combined_error(lacking) from lacking[0]
    # Last, when all is there: the message then names every input that differs.
    if locked and job.locked:
        _check_lock(job, job.locked, locked, here.lock(reached), wanted)
    store = external.store(job)
    return Inputs(
        mirror=repository,
        commit=source.commit,
        epoch=epoch,
        programs=programs,
        # Each was hashed in this run, and is not hashed again.
        archives=tuple(
            Artefact(path=path, sha256=sha256, size=path.stat().st_size)
            for sha256, path in ((each, store.path(each)) for each in sorted(reached.supply.ways))
        ),
        absent=tuple(sorted({one.wanted.name for one in reached.supply.missing})),
        clones=tuple(
            Copied(remote=clone.remote, commit=clone.commit, repository=repository)
            for clone, repository in sorted(reached.clones.items())
        ),
        substitutes=external.replaced_checksums(here.pins, reached.rules),
        starts=here.starts,
        unpinned=tuple(external.unpinned_downloads(reached.rules)),
        packages=tuple(installed),
        registry=external.registry_files(job, reached.rules),
    )


def _combined_error(faults: Sequence[SupplyError]) -> SupplyError:
    """Return one error for all inputs that could not be obtained; the last has the log."""
    if len(faults) == 1:
        return faults[0]
    lines = [line for fault in faults for line in (f"{fault.what}:", *fault.evidence.lines)]
    return SupplyError(
        "; ".join(fault.what for fault in faults),
        remedy=" ".join(fault.template for fault in faults),
        evidence=Evidence(lines=lines, log=faults[-1].evidence.log),
    )


def obtain_programs(
    job: Job, bazel: BazelTable, wanted: HostTable, locked: "Lock | None", host: HostFacts
) -> Programs:
    """Obtain what runs during the build, by the checksums of the recipe and of the lock."""
    from tfwright.tools.bazel import binary as bazels
    from tfwright.tools.python import venv
    from tfwright.vault import locking

    stores = job.places.stores
    host_binary = job.host_file.bazel(bazel.version)
    # The lock's checksum before Bazel runs: afterwards it could only be regretted.
    binary = bazels.obtain(
        bazel.version,
        locking.bazel_checksums(bazel, locked),
        stores,
        given=host_binary,
        offline=job.offline,
        note=job.listener.note,
    )
    interpreter = venv.make_venv(
        host.interpreter,
        locking.with_hashes(wanted.requirements, locked),
        stores,
        offline=job.offline,
        log=job.log("fetch-python"),
    )
    home = interpreter.parent.parent
    return Programs(
        bazel=Artefact.of(binary.path),
        python=interpreter,
        venv=Folder(path=home, sha256=venv.content_digest(home)),
    )


def _check_lock(job: Job, path: Path, locked: "Lock", found: "Lock", wanted: HostTable) -> None:
    """Refuse an input that is not the one that was locked."""
    from tfwright.vault import lock, locking

    if job.pinned_bazel:
        # The lock is about the pinned one, and knows nothing of what another one declares.
        pinned = locked.bazel.changed(binaries={})
        found = found.changed(bazel=pinned)
    wrong = [
        *lock.differences(locked, found),
        *locking.requirement_differences(wanted.requirements, locked),
    ]
    if wrong:
        raise SupplyError(
            f"{path.name} does not fit the inputs: {first_of(wrong)}",
            remedy=(
                f"If the change is meant, run 'invoke lock --recipe {job.argument}' "
                "and read what it changes."
            ),
            where=path,
            lines=wrong,
        )


def inputs(job: Job, source: SourceTable) -> Mapping[str, str]:
    """Return the digests of the lock, of the patches, which can change rules, and of where to look.

    An archive that no source gave is only noted where no lock says that it is needed: a mirror or a
    dropped file that the user adds later has to wake this stage.
    """
    from tfwright.rules import patched_tree

    patches = patched_tree.rule_digests(source).items()
    settings = job.host_file
    dropped = sorted(trees.files_below(settings.drop, follow=True)) if settings.drop else ()
    named = {"mirrors": settings.mirrors, "downloads": settings.downloads}
    return {
        **{f"patches/{file}": digest for file, digest in patches},
        **({job.locked.name: files.sha256(job.locked)} if job.locked else {}),
        "the host file's [mirrors] and [downloads]": json_text.digest(named),
        # Their content is hashed when one of them is needed.
        "the host file's drop folder": json_text.digest(
            [(str(path), state.st_size, state.st_mtime_ns) for path, state in dropped]
        ),
    }


def steps(job: Job, source: SourceTable, fetch: FetchTable) -> Sequence[Step]:
    """Return the transfer of the pinned commit, unless the mirror has it, and the substitutes."""
    from tfwright.pipeline import external
    from tfwright.tools.git import mirror
    from tfwright.tools.git.mirror import Pin

    pin = Pin.of(source)
    kept = external.store(job)
    return (
        mirror.fetch_command(mirror.path_of(job.places.git, pin.url), pin),
        *(
            Writes(
                kept.path(table.sha256),
                f"{'Pinned by the recipe' if table.pins else 'Not the pinned bytes'}: "
                f"{name}: {table.reason}",
            )
            for name, table in fetch.substitutes.items()
        ),
    )


def damage(job: Job, inputs: Inputs) -> str | None:
    """Say which of the shared places was removed meanwhile, or that archives were left out."""
    if job.wants_archives and not inputs.whole:
        return "only what ./configure needs was fetched"
    repositories = [inputs.mirror, *(clone.repository for clone in inputs.clones)]
    programs = [inputs.programs.python] if inputs.programs else []
    # Whether they still hold what they should is asked by those who use them, by digest.
    gone = (path for path in (*repositories, *programs) if not path.exists())
    return next((f"{path} is gone" for path in gone), None)
