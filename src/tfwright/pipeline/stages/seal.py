"""Puts the wheel into canonical bytes, with a record of its build and a bill of materials."""

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright import __version__
from tfwright.documents.recipe import Recipe, VerifyTable
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
    from tfwright.wheel.seal.build_record import ArchiveComponent, Materials, RecordedCheck


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
    """Seal the wheel, dated like the commit that it was built from.

    Its record holds versions and digests only, no time and no place of this host: two hosts that
    build the same recipe must write the same bytes. Raises WheelError if its platform cannot be
    claimed.
    """
    from tfwright.pipeline import host_facts
    from tfwright.rules import patched_tree
    from tfwright.tools.process.command import clean_environment
    from tfwright.wheel import archive
    from tfwright.wheel.seal import bill, build_record, platform_tag, sealing
    from tfwright.wheel.seal.build_record import (
        BuildRecord,
        RecordedBazel,
        RecordedFile,
        RecordedProgram,
        RecordedSource,
        Substitution,
    )

    path, platform = raw.wheel.path, recipe.package.platform
    name = path.name
    if platform:
        # Before anything is written: auditwheel must prove a manylinux tag.
        platform_tag.check_platform(path, platform)
        name = platform_tag.wheel_name(name, platform)
    target = job.places.dist / "sealed" / name
    # A change of the platform tag renames the wheel; no earlier one may stay.
    files.remove(target.parent)
    exported = {
        name: f"@{name}@" if value.startswith("/") else value
        for name, value in configured.exported.items()
    }
    compiling, tables = recipe.compile, recipe.fetch.substitutes
    applied = inputs.used_source(recipe.source, recipe.fetch)
    with archive.open_wheel(path) as wheel:
        record = BuildRecord(
            sealer=sealing.this_sealer(),
            recipe=build_record.recipe_content(recipe),
            lock=files.sha256(job.locked) if job.locked else None,
            # The tree's content as well: it covers patches and assets, which the commit does not.
            source=RecordedSource(
                url=recipe.source.url,
                commit=tree.commit,
                release=str(tree.release),
                content=tree.content,
                epoch=tree.epoch,
            ),
            # By digest: a patch may change without its name.
            files=tuple(
                RecordedFile(path=file, sha256=sha256)
                for file, sha256 in patched_tree.file_digests(applied).items()
            ),
            bazel=RecordedProgram(version=recipe.bazel.version, sha256=inputs.bazel.sha256),
            # Versions and not places: a CUDA in another directory gives the same bytes.
            found=host_facts.for_record(recipe, job.host_file, host),
            # Flags and environment decide the bytes; the number of jobs does not. All that Bazel's
            # actions could see is built by the function that makes the real environment, so that
            # none of its variables is missed; paths of this host stand as @NAME@.
            build=RecordedBazel(
                target=compiling.target,
                flags=compiling.flags,
                environment=clean_environment(
                    Path("@HOME@"), (Path("@PROGRAMS@"),), tree.epoch, {**compiling.env, **exported}
                ),
            ),
            substitutions=tuple(
                Substitution(
                    name=name, reason=tables[name].reason, sha256=sha256, used=tables[name].sha256
                )
                for name, sha256 in inputs.substitutes.items()
            ),
            # In the record, since importing TensorFlow does not show it.
            stubs=(nccl_ops.library.path.name,) if nccl_ops.stub and nccl_ops.library else (),
            checks=tuple(_recorded_checks(path, wheel, recipe.verify, host)),
        )
        additions = {
            build_record.NAME: build_record.write(record),
            build_record.BILL_NAME: bill.write(_materials(job, recipe, path, inputs)),
        }
        if platform:
            additions["WHEEL"] = platform_tag.with_platform_tags(wheel, platform)
        with files.replacing(target) as temporary, temporary.open("wb") as stream:
            sealing.seal(wheel, stream, tree.epoch, additions)
    return SealedWheel(wheel=Artefact.of(target))


def inputs(job: Job) -> Mapping[str, str]:
    """Return what the record says of tfwright itself, and the digest of the lock."""
    from importlib import metadata

    # Each build asks, also one with nothing to do: what seals would take long to load.
    versions = {
        "the version of tfwright": __version__,
        "the version of deflate": metadata.version("deflate"),
    }
    # Another release of the compressor may write other bytes from the same files.
    if job.locked:
        versions[job.locked.name] = files.sha256(job.locked)
    return versions


def _recorded_checks(
    path: Path, wheel: zipfile.ZipFile, floor: VerifyTable, host: HostFacts
) -> "Iterator[RecordedCheck]":
    """Say what can be read off the wheel; verify, which reads the sealed wheel, refuses it."""
    from tfwright.wheel.inspect import floors, inspection
    from tfwright.wheel.seal.build_record import RecordedCheck

    # Without a search for this host's directories: the record must be the same on all hosts.
    found = inspection.read_contents(wheel)
    for reading in floors.readings(path, wheel, found, floor, host.python):
        detail = reading.faults[0] if reading.faults else reading.detail
        yield RecordedCheck(name=reading.name, passed=not reading.faults, detail=detail)


def _materials(job: Job, recipe: Recipe, path: Path, inputs: Inputs) -> "Materials":
    """Return what the wheel is made from."""
    from packaging.utils import parse_wheel_filename

    from tfwright.pipeline import external
    from tfwright.pipeline.external import RecipePins
    from tfwright.rules import patched_tree
    from tfwright.vault import lock
    from tfwright.wheel.seal.build_record import ArchiveComponent, Materials, SubstituteComponent

    project, version, _, _ = parse_wheel_filename(path.name)
    # For a recipe without a lock, the lock that would fit its inputs.
    known = (
        lock.read(job.locked)
        if job.locked
        else external.lock_of_inputs(job, RecipePins.of(recipe), inputs)
    )
    substitutes = {
        used.sha256: SubstituteComponent(used.used, used.source, used.reason)
        for used in known.substitutes
    }
    # Without a lock it is not known which of the archives Bazel wanted, which is None: a list of
    # materials may name too much, not too little. Of Bazel's own archives a build takes hardly any.
    archives = (
        ArchiveComponent(each.names, each.urls, each.sha256, substitutes.get(each.sha256))
        for each in known.archives
        if each.needed or (each.needed is None and not each.of_bazel)
    )
    image = recipe.host.image
    return Materials(
        project=project,
        version=str(version),
        url=recipe.source.url,
        commit=inputs.commit,
        epoch=inputs.epoch,
        files=patched_tree.file_digests(inputs.used_source(recipe.source, recipe.fetch)),
        archives=(*archives, *_toolkit_packages(recipe)),
        clones=tuple(
            (clone.remote, clone.commit) for clone in known.clones if clone.needed is not False
        ),
        image=(image.name, image.digest) if image else None,
    )


def _toolkit_packages(recipe: Recipe) -> "Iterator[ArchiveComponent]":
    """Yield the toolkit packages that the recipe pins; the wheel contains or calls their code."""
    from tfwright.vault import registries
    from tfwright.wheel.seal.build_record import ArchiveComponent

    for part, table in recipe.toolkit.parts():
        # Every way is named: which one a host took does not change the files' bytes.
        for _, pins in table.ways():
            for name, sha256 in pins.items():
                urls = (registries.package_url_of_file(name),)
                yield ArchiveComponent((f"{part}: {name}",), urls, sha256)
