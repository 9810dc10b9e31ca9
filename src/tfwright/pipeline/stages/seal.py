"""Puts the wheel into canonical bytes, with a record of its build and a bill of materials."""

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright import __version__
from tfwright.documents.recipe import CompileTable, Recipe, VerifyTable
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import (
    Configured,
    HostFacts,
    Inputs,
    NcclOps,
    RawWheel,
    SealedWheel,
    Tree,
)
from tfwright.pipeline.stage import Artefact
from tfwright.tools import files

if TYPE_CHECKING:
    from tfwright.vault import lock
    from tfwright.wheel.seal import build_record, sbom
    from tfwright.wheel.seal.build_record import (
        BuildRecord,
        RecordedBazel,
        RecordedCheck,
        RecordedFile,
        RecordedSource,
        Substitution,
    )
    from tfwright.wheel.seal.sbom import Materials


REVISION = 2


def run(
    job: Job,
    recipe: Recipe,
    host: HostFacts,
    inputs: Inputs,
    tree: Tree,
    configured: Configured,
    nccl_ops: NcclOps,
    raw: RawWheel,
) -> SealedWheel:
    """Seal the wheel, dated like the commit that it was built from."""
    from tfwright.wheel import archive
    from tfwright.wheel.seal import build_record, platform_tag, sbom, sealing

    path = raw.wheel.path
    platform = recipe.package.platform
    target = _target(job, path, platform)
    # A change of the platform tag renames the wheel; no earlier one may stay.
    files.remove(target.parent)
    with archive.opened(path) as wheel:
        checks = tuple(_checks(path, wheel, recipe.verify, host))
        record = _record(job, recipe, host, inputs, tree, configured, nccl_ops, checks)
        additions = {
            build_record.NAME: build_record.write(record),
            sbom.NAME: sbom.write(_materials(job, recipe, path, inputs)),
        }
        if platform:
            additions["WHEEL"] = platform_tag.stated(wheel, platform)
        with files.replacing(target) as temporary, temporary.open("wb") as stream:
            sealing.seal(wheel, stream, tree.epoch, additions)
    return SealedWheel(wheel=Artefact.of(target))


def _target(job: Job, raw: Path, platform: str | None) -> Path:
    """Return where the sealed wheel goes; raise WheelError if its platform cannot be claimed."""
    from tfwright.wheel.seal import platform_tag

    name = raw.name
    if platform:
        # Before anything is written: auditwheel must prove a manylinux tag.
        platform_tag.insist(raw, platform)
        name = platform_tag.renamed(name, platform)
    return job.places.dist / "sealed" / name


def _record(
    job: Job,
    recipe: Recipe,
    host: HostFacts,
    inputs: Inputs,
    tree: Tree,
    configured: Configured,
    nccl_ops: NcclOps,
    checks: "tuple[RecordedCheck, ...]",
) -> "BuildRecord":
    """Return the record of a build: versions and digests only, no time and no place of this host.

    Two hosts that build the same recipe must write the same bytes.
    """
    from tfwright.pipeline import host_facts
    from tfwright.wheel.seal import build_record, sealing
    from tfwright.wheel.seal.build_record import BuildRecord, RecordedProgram

    return BuildRecord(
        sealer=sealing.sealer(),
        recipe=build_record.recipe_content(recipe),
        lock=files.sha256(job.locked) if job.locked else None,
        source=_source(recipe, tree),
        files=_files(recipe),
        bazel=RecordedProgram(version=recipe.bazel.version, sha256=inputs.bazel.sha256),
        # Versions and not places: a CUDA in another directory gives the same bytes.
        found=host_facts.found(recipe, job.host_file, host),
        build=_build(recipe.compile, tree, configured),
        substitutions=_substitutions(inputs),
        stubs=_stubs(nccl_ops),
        checks=checks,
    )


def inputs(job: Job) -> Mapping[str, str]:
    """Return what the record says of tfwright itself, and the digest of the lock."""
    from tfwright.wheel.seal import sealing

    versions = {
        "the version of tfwright": __version__,
        f"the version of {sealing.COMPRESSOR}": sealing.sealer().deflate,
    }
    # Another release of the compressor may write other bytes from the same files.
    if job.locked:
        versions[job.locked.name] = files.sha256(job.locked)
    return versions


def _source(recipe: Recipe, tree: Tree) -> "RecordedSource":
    from tfwright.wheel.seal.build_record import RecordedSource

    # The tree's content as well: it covers patches and
    # assets, which the commit does not.
    return RecordedSource(
        url=recipe.source.url,
        commit=tree.commit,
        release=str(tree.release),
        content=tree.content,
        epoch=tree.epoch,
    )


def _files(recipe: Recipe) -> "tuple[RecordedFile, ...]":
    """Return the digests of patches and assets, by path under patches/."""
    from tfwright.rules import patched_tree
    from tfwright.wheel.seal.build_record import RecordedFile

    # By digest: a patch may change without its name.
    return tuple(
        RecordedFile(path=file, sha256=sha256)
        for file, sha256 in patched_tree.digests(recipe.source).items()
    )


def _build(compiling: CompileTable, tree: Tree, configured: Configured) -> "RecordedBazel":
    from tfwright.wheel.seal.build_record import RecordedBazel

    # Flags and environment decide the bytes; the number of jobs does not.
    return RecordedBazel(
        target=compiling.target,
        flags=compiling.flags,
        environment=_environment(compiling, tree, configured),
    )


def _substitutions(inputs: Inputs) -> "tuple[Substitution, ...]":
    from tfwright.wheel.seal.build_record import Substitution

    return tuple(
        Substitution.model_validate(substituted.model_dump()) for substituted in inputs.substitutes
    )


def _stubs(nccl_ops: NcclOps) -> tuple[str, ...]:
    """Name the library that TensorFlow can import but not use, if it was built so."""
    # In the record, since importing TensorFlow does not show it.
    stub = nccl_ops.library if nccl_ops.stub else None
    return (stub.path.name,) if stub else ()


def _environment(compiling: CompileTable, tree: Tree, configured: Configured) -> dict[str, str]:
    """Return all that Bazel's actions could see; paths of this host stand as ``@NAME@``."""
    from tfwright.tools.process import environment

    exported = {
        name: f"@{name}@" if value.startswith("/") else value
        for name, value in configured.exported.items()
    }
    # Built by the function that makes the real one, so
    # that none of its variables is missed.
    return environment.clean(
        Path("@HOME@"), (Path("@PROGRAMS@"),), tree.epoch, {**compiling.env, **exported}
    )


def _checks(
    path: Path, wheel: zipfile.ZipFile, floor: VerifyTable, host: HostFacts
) -> "Iterator[build_record.RecordedCheck]":
    """Say what can be read off the wheel; verify, which reads the sealed wheel, refuses it."""
    from tfwright.wheel.inspect import inspection, needs
    from tfwright.wheel.seal import build_record

    # Without a search for this host's directories: the record must be the same on all hosts.
    found = inspection.contents(wheel)
    for reading in needs.readings(path, wheel, found, floor, host.python):
        detail = reading.faults[0] if reading.faults else reading.detail
        yield build_record.RecordedCheck(
            name=reading.name, passed=not reading.faults, detail=detail
        )


def _materials(job: Job, recipe: Recipe, path: Path, inputs: Inputs) -> "Materials":
    """Return what the wheel is made from."""
    from packaging.utils import parse_wheel_filename

    from tfwright.rules import patched_tree
    from tfwright.wheel.seal.sbom import Materials

    project, version, _, _ = parse_wheel_filename(path.name)
    known = _known_lock(job, recipe, inputs)
    # None means that it is not known: a list of materials
    # may name too much, not too little.
    wanted = (clone for clone in known.clones if clone.needed is not False)
    image = recipe.host.image
    return Materials(
        project=project,
        version=str(version),
        url=recipe.source.url,
        commit=inputs.commit,
        epoch=inputs.epoch,
        files=patched_tree.digests(recipe.source),
        archives=(*_archives(known), *_packages(recipe)),
        clones=tuple((clone.remote, clone.commit) for clone in wanted),
        image=(image.name, image.digest) if image else None,
    )


def _known_lock(job: Job, recipe: Recipe, inputs: Inputs) -> "lock.Lock":
    """Return the recipe's lock; for a recipe without one, the lock that would fit its inputs."""
    from tfwright.pipeline import external
    from tfwright.pipeline.external import RecipePins
    from tfwright.vault import lock

    if job.locked:
        return lock.read(job.locked)
    return external.known_lock(job, RecipePins.of(recipe), inputs)


def _packages(recipe: Recipe) -> "Iterator[sbom.ArchiveComponent]":
    """Yield the toolkit packages that the recipe pins; the wheel contains or calls their code."""
    from tfwright.vault import registries
    from tfwright.wheel.seal import sbom

    for part, table in recipe.toolkit.parts():
        # Every way is named: which one a host took does not change the files' bytes.
        for _, pins in table.ways():
            for name, sha256 in pins.items():
                urls = (registries.of_file(name),)
                yield sbom.ArchiveComponent((f"{part}: {name}",), urls, sha256)


def _archives(known: "lock.Lock") -> "Iterator[sbom.ArchiveComponent]":
    """Yield the archives that the build can have taken.

    Without a lock it is not known which of them Bazel wanted, least of all of Bazel's own.
    """
    from tfwright.wheel.seal import sbom

    substitutes = {
        used.sha256: sbom.SubstituteComponent(used.used, used.source, used.reason)
        for used in known.substitutes
    }
    for locked in filter(_may_be_taken, known.archives):
        substitute = substitutes.get(locked.sha256)
        yield sbom.ArchiveComponent(locked.names, locked.urls, locked.sha256, substitute)


def _may_be_taken(archive: "lock.LockedArchive") -> bool:
    # Not known is None: of Bazel's own archives a build takes hardly any.
    unknown = archive.needed is None and not archive.of_bazel
    return bool(archive.needed or unknown)
