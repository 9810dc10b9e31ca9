"""The bill of materials as CycloneDX writes it; `build_record.Materials` says what is in it."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Commit, Component, ComponentType, Pedigree
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from tfwright import __version__
from tfwright.documents import filesystem
from tfwright.wheel.seal.build_record import ArchiveComponent, Materials

GITHUB = re.compile(
    r"https://(?:\S+/)?(?:github\.com|codeload\.github\.com)/([\w.-]+)/([\w.-]+)/"
    r"(?:archive(?:/refs/tags)?|tar\.gz|releases/download)/([\w.+-]+)"
)
"""An archive of a repository on GitHub: owner, repository, commit or tag with the ending.

Mirrors lay them out in the same way.
"""
ENDING = re.compile(r"\.(tar\.(gz|bz2|xz)|tgz|zip)$")


def write(materials: Materials) -> bytes:
    """Return the bill: the same bytes for the same materials."""
    project, version = materials.project, materials.version
    wheel = Component(
        name=project,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref="wheel",
        purl=PackageURL("pypi", None, project.lower().replace("_", "-"), version),
    )
    # Number and time follow from the materials: chance or the clock would change the wheel.
    about = BomMetaData(component=wheel, timestamp=filesystem.utc(materials.epoch))
    bill = Bom(serial_number=materials.serial, metadata=about)
    bill.metadata.tools.components.add(
        Component(
            name="tfwright", version=__version__, type=ComponentType.APPLICATION, bom_ref="tfwright"
        )
    )
    changes = ", ".join(materials.files)
    source = _repository(materials.url, materials.commit, "source")
    source.type = ComponentType.FRAMEWORK
    source.pedigree = Pedigree(
        commits=[Commit(uid=materials.commit)], notes=f"Changed by {changes}" if changes else None
    )
    parts = [
        source,
        *(_file(path, sha256) for path, sha256 in materials.files.items()),
        *map(_archive, materials.archives),
        *(
            _repository(remote, commit, f"commit {commit} of {remote}")
            for remote, commit in materials.clones
        ),
    ]
    if materials.image:
        parts.append(_image(*materials.image))
    bill.components.update(parts)
    bill.register_dependency(wheel, parts)
    outputter = make_outputter(bill, OutputFormat.JSON, SchemaVersion.V1_6)
    return f"{outputter.output_as_string(indent=1)}\n".encode()


def _sha256(digest: str) -> list[HashType]:
    return [HashType(alg=HashAlgorithm.SHA_256, content=digest)]


def _image(name: str, digest: str) -> Component:
    """Return the container image: its compiler and libc are in the wheel, or decided about it."""
    # The package URL of an image has the last part of its name; all of it is a qualifier.
    short = name.rpartition("/")[2]
    return Component(
        name=name,
        version=digest,
        type=ComponentType.CONTAINER,
        bom_ref=f"image {digest}",
        purl=PackageURL("oci", None, short, digest, {"repository_url": name}),
        hashes=_sha256(digest.removeprefix("sha256:")),
    )


def _repository(url: str, commit: str, bom_ref: str) -> Component:
    """Return a commit of a repository."""
    name = PurePosixPath(url).name.removesuffix(".git")
    if found := re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?", url):
        purl = PackageURL("github", found[1].lower(), found[2].lower(), commit)
    else:
        own = re.split(r"[:/]", url)[-1]
        purl = PackageURL("generic", None, own, commit, {"vcs_url": f"git+{url}@{commit}"})
    return Component(
        name=name.partition(":")[2] or name,
        version=commit,
        type=ComponentType.LIBRARY,
        bom_ref=bom_ref,
        purl=purl,
        hashes=[HashType(alg=HashAlgorithm.SHA_1, content=commit)],
    )


def _file(path: str, sha256: str) -> Component:
    """Return a patch or an asset."""
    checksum = {"checksum": f"sha256:{sha256}"}
    return Component(
        name=path,
        type=ComponentType.FILE,
        bom_ref=f"file {path}",
        purl=PackageURL("generic", None, PurePosixPath(path).name, None, checksum),
        hashes=_sha256(sha256),
    )


def _archive(archive: ArchiveComponent) -> Component:
    """Return an archive as it was used; the archive that it replaces is its ancestor."""
    pinned = _component(archive, archive.urls, archive.sha256)
    if archive.substitute is None:
        return pinned
    used = _component(archive, (archive.substitute.source,), archive.substitute.sha256)
    used.pedigree = Pedigree(
        ancestors=[pinned], notes=f"Stands in for the pinned archive: {archive.substitute.reason}"
    )
    return used


def _component(archive: ArchiveComponent, urls: Sequence[str], sha256: str) -> Component:
    """Return a file by its digest and the addresses that it has."""
    purl = package_url(archive.names, urls, sha256)
    # The schema takes URLs only; a rule may name a local path as well.
    addresses = [url for url in urls if re.match(r"(https?|ftp)://\S+$", url)]
    return Component(
        name=archive.names[0] if archive.names else sha256,
        version=purl.version,
        type=ComponentType.LIBRARY,
        bom_ref=f"sha256:{sha256}",
        purl=purl,
        hashes=_sha256(sha256),
        external_references=[
            ExternalReference(type=ExternalReferenceType.DISTRIBUTION, url=XsUri(url))
            for url in addresses
        ],
    )


def package_url(names: Sequence[str], urls: Sequence[str], sha256: str) -> PackageURL:
    """Return the package URL of a file: a registry's, GitHub's, or a generic one with checksum."""
    checksum = {"checksum": f"sha256:{sha256}"}
    for url in urls:
        if url.startswith("pkg:"):
            return PackageURL.from_string(url)
        if found := GITHUB.match(url):
            return PackageURL(
                "github", found[1].lower(), found[2].lower(), ENDING.sub("", found[3]), checksum
            )
    return PackageURL(
        "generic",
        None,
        names[0] if names else sha256,
        None,
        {**({"download_url": urls[0]} if urls else {}), **checksum},
    )
