"""The bill of materials in a wheel (PEP 770): CycloneDX of source, patches and every archive."""

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tfwright import __version__
from tfwright.documents import clock

if TYPE_CHECKING:
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component
    from packageurl import PackageURL

NAME = "sboms/tfwright.cdx.json"
"""The file's name in ``.dist-info``."""
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "tfwright.cdx.json")
"""Of the serial numbers, which follow from the content: the same materials have the same one."""
GITHUB = re.compile(
    r"https://(?:\S+/)?(?:github\.com|codeload\.github\.com)/([\w.-]+)/([\w.-]+)/"
    r"(?:archive(?:/refs/tags)?|tar\.gz|releases/download)/([\w.+-]+)"
)
"""An archive of a repository on GitHub: owner, repository, commit or tag with the ending.

Mirrors lay them out in the same way.
"""
ENDING = re.compile(r"\.(tar\.(gz|bz2|xz)|tgz|zip)$")


@dataclass(frozen=True)
class ArchiveComponent:
    """A file that repository rules download."""

    names: tuple[str, ...]
    """Of the repositories that are made from it."""
    urls: tuple[str, ...]
    """Addresses, or the package URL of a registry's file."""
    sha256: str
    """Of the file that the rules pin."""
    substitute: "SubstituteComponent | None" = None


@dataclass(frozen=True)
class SubstituteComponent:
    """What was used in the place of an archive."""

    sha256: str
    source: str
    """Its address, or its repository and commit."""
    reason: str


@dataclass(frozen=True)
class Materials:
    """What a wheel is made from."""

    project: str
    version: str
    url: str
    """Of the source's repository."""
    commit: str
    epoch: int
    """When the commit was made, in seconds; the bill's own time would change its bytes."""
    files: Mapping[str, str]
    """Digests of patches and assets, by path."""
    archives: Sequence[ArchiveComponent]
    clones: Sequence[tuple[str, str]] = field(default=(), repr=False)
    """Remote and commit of the repositories that rules clone."""

    image: tuple[str, str] | None = field(default=None, repr=False)
    """Name and digest of the container image that the build ran in."""

    @property
    def serial(self) -> uuid.UUID:
        """The number of the bill, which follows from what is in it.

        What most bills do not have at all does not change theirs.
        """
        clones = "".join(f" {commit} {remote}" for remote, commit in self.clones)
        image = f" {self.image[1]} {self.image[0]}" if self.image else ""
        return uuid.uuid5(NAMESPACE, f"{self!r}{clones}{image}")


def write(materials: Materials) -> bytes:
    """Return the bill: the same bytes for the same materials."""
    # Imported in functions: cyclonedx takes a second to load, and only a seal needs it.
    from cyclonedx.output import make_outputter
    from cyclonedx.schema import OutputFormat, SchemaVersion

    bill = _bill(materials)
    parts = [
        _source(materials),
        *_files(materials),
        *map(_archive, materials.archives),
        *(_clone(remote, commit) for remote, commit in materials.clones),
    ]
    if materials.image:
        parts.append(_image(*materials.image))
    bill.components.update(parts)
    bill.register_dependency(_wheel(materials), parts)
    outputter = make_outputter(bill, OutputFormat.JSON, SchemaVersion.V1_6)
    text = outputter.output_as_string(indent=1)
    return f"{text}\n".encode()


def _bill(materials: Materials) -> "Bom":
    """Return a bill that says what it is about, and lists nothing yet."""
    from cyclonedx.model.bom import Bom, BomMetaData
    from cyclonedx.model.component import Component, ComponentType

    when = clock.utc(materials.epoch)
    about = BomMetaData(component=_wheel(materials), timestamp=when)
    # Both follow from the materials: a random number or the clock would change the wheel.
    bill = Bom(serial_number=materials.serial, metadata=about)
    tool = Component(
        name="tfwright", version=__version__, type=ComponentType.APPLICATION, bom_ref="tfwright"
    )
    bill.metadata.tools.components.add(tool)
    return bill


def _wheel(materials: Materials) -> "Component":
    from cyclonedx.model.component import Component, ComponentType

    return Component(
        name=materials.project,
        version=materials.version,
        type=ComponentType.LIBRARY,
        bom_ref="wheel",
        purl=_pypi(materials),
    )


def _pypi(materials: Materials) -> "PackageURL":
    from packageurl import PackageURL

    return PackageURL("pypi", None, materials.project.lower().replace("_", "-"), materials.version)


def _source(materials: Materials) -> "Component":
    """Return TensorFlow's source, with what was changed in it."""
    from cyclonedx.model.component import Commit, ComponentType, Pedigree

    changes = ", ".join(materials.files)
    source = _repository(materials.url, materials.commit, "source")
    source.type = ComponentType.FRAMEWORK
    source.pedigree = Pedigree(
        commits=[Commit(uid=materials.commit)], notes=f"Changed by {changes}" if changes else None
    )
    return source


def _clone(remote: str, commit: str) -> "Component":
    """Return a commit that a rule clones."""
    return _repository(remote, commit, f"commit {commit} of {remote}")


def _image(name: str, digest: str) -> "Component":
    """Return the container image: its compiler and libc are in the wheel, or decided about it."""
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    # The package URL of an image has the last part of its name; all of it is a qualifier.
    short = name.rpartition("/")[2]
    return Component(
        name=name,
        version=digest,
        type=ComponentType.CONTAINER,
        bom_ref=f"image {digest}",
        purl=PackageURL("oci", None, short, digest, {"repository_url": name}),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest.removeprefix("sha256:"))],
    )


def _repository(url: str, commit: str, bom_ref: str) -> "Component":
    """Return a commit of a repository."""
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.component import Component, ComponentType

    name = PurePosixPath(url).name.removesuffix(".git")
    return Component(
        name=name.partition(":")[2] or name,
        version=commit,
        type=ComponentType.LIBRARY,
        bom_ref=bom_ref,
        purl=_commit_url(url, commit),
        hashes=[HashType(alg=HashAlgorithm.SHA_1, content=commit)],
    )


def _commit_url(url: str, commit: str) -> "PackageURL":
    """Return the package URL of a repository's commit."""
    from packageurl import PackageURL

    found = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?", url)
    if found:
        return PackageURL("github", found[1].lower(), found[2].lower(), commit)
    return PackageURL(
        "generic", None, re.split(r"[:/]", url)[-1], commit, {"vcs_url": f"git+{url}@{commit}"}
    )


def _files(materials: Materials) -> list["Component"]:
    """Return the patches and the assets."""
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    return [
        Component(
            name=path,
            type=ComponentType.FILE,
            bom_ref=f"file {path}",
            purl=PackageURL(
                "generic", None, PurePosixPath(path).name, None, {"checksum": f"sha256:{sha256}"}
            ),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256)],
        )
        for path, sha256 in materials.files.items()
    ]


def _archive(archive: ArchiveComponent) -> "Component":
    """Return an archive as it was used; the archive that it replaces is its ancestor."""
    from cyclonedx.model.component import Pedigree

    pinned = _component(archive, archive.urls, archive.sha256)
    if archive.substitute is None:
        return pinned
    used = _component(archive, (archive.substitute.source,), archive.substitute.sha256)
    used.pedigree = Pedigree(
        ancestors=[pinned], notes=f"Stands in for the pinned archive: {archive.substitute.reason}"
    )
    return used


def _component(archive: ArchiveComponent, urls: Sequence[str], sha256: str) -> "Component":
    """Return a file by its digest and the addresses that it has."""
    from cyclonedx.model import (
        ExternalReference,
        ExternalReferenceType,
        HashAlgorithm,
        HashType,
        XsUri,
    )
    from cyclonedx.model.component import Component, ComponentType

    purl = package_url(archive.names, urls, sha256)
    # The schema takes URLs only; a rule may name a local path as well.
    addresses = [url for url in urls if re.match(r"(https?|ftp)://\S+$", url)]
    return Component(
        name=archive.names[0] if archive.names else sha256,
        version=purl.version,
        type=ComponentType.LIBRARY,
        bom_ref=f"sha256:{sha256}",
        purl=purl,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256)],
        external_references=[
            ExternalReference(type=ExternalReferenceType.DISTRIBUTION, url=XsUri(url))
            for url in addresses
        ],
    )


def package_url(names: Sequence[str], urls: Sequence[str], sha256: str) -> "PackageURL":
    """Return the package URL of a file: a registry's, GitHub's, or a generic one with checksum."""
    from packageurl import PackageURL

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
