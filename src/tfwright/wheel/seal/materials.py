"""What a wheel is made from, as its bill of materials lists it."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

BILL_NAME = "sboms/tfwright.cdx.json"
"""The file's name in ``.dist-info``."""
BILL_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "tfwright.cdx.json")
"""Of the serial numbers, which follow from the content: the same materials have the same one."""


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

        It covers the names of these classes and fields, too. What most bills do not have at all
        does not change theirs.
        """
        clones = "".join(f" {commit} {remote}" for remote, commit in self.clones)
        image = f" {self.image[1]} {self.image[0]}" if self.image else ""
        return uuid.uuid5(BILL_NAMESPACE, f"{self!r}{clones}{image}")
