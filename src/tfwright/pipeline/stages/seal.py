"""Puts the wheel into canonical bytes, with a record of its build and a bill of materials, after its RECORD has been found true."""

import zipfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path, PurePosixPath

from packaging.utils import parse_wheel_filename

from tfwright import __version__
from tfwright.documents.recipe import PATCHES, CompileTable, SourceTable, VerifyTable
from tfwright.host import cuda, nvidia, probes
from tfwright.pipeline.results import (
    Configured,
    HostFacts,
    Inputs,
    NcclOps,
    RawWheel,
    SealedWheel,
    Tree,
)
from tfwright.pipeline.stage import Artefact, Job
from tfwright.pipeline.stages import fetch, nccl, verify
from tfwright.tools import files
from tfwright.tools.process import environment
from tfwright.vault import lock
from tfwright.wheel import archive
from tfwright.wheel.seal import build_record, sbom, sealing
from tfwright.wheel.seal.build_record import (
    BuildRecord,
    Found,
    RecordedBazel,
    RecordedFile,
    RecordedProgram,
    RecordedSource,
    Sealer,
    Substitution,
)
from tfwright.wheel.seal.sbom import Materials

REVISION = 2
COMPRESSOR = "deflate"
"""The package that compresses: what version it has shows in the bytes."""
SEALER = Sealer(version=__version__, deflate=metadata.version(COMPRESSOR))


def run(
    job: Job,
    source: SourceTable,
    compiling: CompileTable,
    floor: VerifyTable,
    host: HostFacts,
    inputs: Inputs,
    tree: Tree,
    configured: Configured,
    nccl_ops: NcclOps,
    raw: RawWheel,
) -> SealedWheel:
    """Seal the wheel, dated like the commit that it was built from."""
    path = raw.wheel.path
    target = job.places.dist / "sealed" / path.name
    files.remove(target.parent)
    with archive.opened(path) as wheel:
        record = BuildRecord(
            sealer=SEALER,
            recipe=build_record.recipe_content(job.recipe),
            lock=files.sha256(job.locked) if job.locked else None,
            source=RecordedSource(
                url=source.url,
                commit=tree.commit,
                release=str(tree.release),
                content=tree.content,
                epoch=tree.epoch,
            ),
            files=tuple(
                RecordedFile(path=file, sha256=sha256) for file, sha256 in _files(job).items()
            ),
            bazel=RecordedProgram(version=job.recipe.bazel.version, sha256=inputs.bazel.sha256),
            found=found(job, host),
            build=RecordedBazel(
                target=compiling.target,
                flags=compiling.flags,
                environment=_environment(compiling, tree, configured),
            ),
            substitutions=tuple(
                Substitution.model_validate(one.model_dump()) for one in inputs.substitutes
            ),
            stubs=(PurePosixPath(nccl.LIBRARY).name,) if nccl_ops.stub else (),
            checks=tuple(_checks(path, wheel, floor, host)),
        )
        additions = {
            build_record.NAME: build_record.write(record),
            sbom.NAME: sbom.write(_materials(job, path, inputs)),
        }
        with files.replacing(target) as temporary, temporary.open("wb") as stream:
            sealing.seal(wheel, stream, tree.epoch, additions)
    return SealedWheel(wheel=Artefact.of(target))


def inputs(job: Job) -> Mapping[str, str]:
    """Return what the record says of tfwright itself, and the digest of the lock."""
    versions = {
        "the version of tfwright": SEALER.version,
        f"the version of {COMPRESSOR}": SEALER.deflate,
    }
    return {**versions, **({job.locked.name: files.sha256(job.locked)} if job.locked else {})}


def _files(job: Job) -> dict[str, str]:
    """Return the digests of patches and assets, by path under patches/."""
    return {
        file: files.sha256(PATCHES / file)
        for file in (*job.recipe.source.patches, *job.recipe.source.assets.values())
    }


def found(job: Job, host: HostFacts) -> Found:
    """Return what of the host takes part in the bytes: versions, not places."""
    place = probes.here().place
    toolkits = nvidia.cuda(place, host.cuda) if host.cuda else []
    cudnn = (
        nvidia.cudnn(place, cuda.prefixes(job.recipe, job.host_file)).value if host.cudnn else ""
    )
    return Found(
        system=host.system,
        machine=host.machine,
        glibc=host.glibc,
        python=host.python,
        compiler=host.compiler,
        cuda=toolkits[0].value if toolkits else "",
        cudnn=cudnn,
    )


def _environment(compiling: CompileTable, tree: Tree, configured: Configured) -> dict[str, str]:
    """Return all that Bazel's actions could see; what configure found on this host stands as ``@NAME@``."""
    exported = {
        name: f"@{name}@" if value.startswith("/") else value
        for name, value in configured.exported.items()
    }
    return environment.clean(
        Path("@HOME@"), (Path("@PROGRAMS@"),), tree.epoch, {**compiling.env, **exported}
    )


def _checks(
    path: Path, wheel: zipfile.ZipFile, floor: VerifyTable, host: HostFacts
) -> Iterator[build_record.RecordedCheck]:
    """Say what can be read off the wheel; to refuse it is left to verify, which reads the sealed one."""
    for reading in verify.readings(path, wheel, floor, host.python):
        yield build_record.RecordedCheck(
            name=reading.name,
            passed=not reading.faults,
            detail=reading.faults[0] if reading.faults else reading.detail,
        )


def _materials(job: Job, path: Path, inputs: Inputs) -> Materials:
    """Return what the wheel is made from."""
    project, version, _, _ = parse_wheel_filename(path.name)
    known = lock.read(job.locked) if job.locked else fetch.known(job, inputs)
    return Materials(
        project=project,
        version=str(version),
        url=job.recipe.source.url,
        commit=inputs.commit,
        epoch=inputs.epoch,
        files=_files(job),
        archives=tuple(_archives(known)),
        clones=tuple((one.remote, one.commit) for one in known.clones if one.needed is not False),
    )


def _archives(known: lock.Lock) -> Iterator[sbom.ArchiveComponent]:
    """Yield what the build can have taken; without a lock nobody knows what of it Bazel wanted, least of all of its own."""
    substitutes = {
        one.sha256: sbom.SubstituteComponent(one.used, one.source, one.reason)
        for one in known.substitutes
    }
    for one in known.archives:
        if one.needed or (one.needed is None and not one.of_bazel):
            yield sbom.ArchiveComponent(
                one.names, one.urls, one.sha256, substitutes.get(one.sha256)
            )
