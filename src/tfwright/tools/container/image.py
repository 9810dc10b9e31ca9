"""Images as OCI layouts: verified blob by blob, and made from a file system in a tar file.

https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

import collections
import hashlib
import json
import platform
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from tfwright.errors import SupplyError, invoke
from tfwright.printable import shell_word
from tfwright.tools import files, json_text, unpacking

INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
LARGEST_DOCUMENT = 4 << 20
"""Bytes of a manifest or configuration; the specification asks readers to refuse more."""
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Names of machines, and what OCI calls them."""


@dataclass(frozen=True)
class ImageManifest:
    """What an image consists of."""

    digest: str
    kind: str = ""
    """Its media type: OCI's, or Docker's of the same form."""
    parts: tuple[str, ...] = ()
    """Digests of the configuration, then of the layers."""


@dataclass(frozen=True)
class KeptImage:
    """An image in the vault."""

    digest: str
    """What a recipe pins: of the manifest, or of a list of manifests, ``sha256:…``."""
    manifest: ImageManifest
    layout: Path
    size: int
    """Bytes of all blobs."""

    @property
    def config(self) -> str:
        """The digest of its configuration: what podman calls the image's id."""
        return self.manifest.parts[0]

    def blobs(self) -> list[Path]:
        """Return the files that the image consists of, each named by its digest."""
        named = (path for path in Layout(self.layout).blobs.iterdir() if path.is_file())
        return sorted(named)


class _ContentDescriptor(BaseModel):
    """What a document names: a manifest, a configuration or a layer."""

    # It becomes a path.
    digest: Annotated[str, Field(pattern=f"^{DIGEST.pattern}$")]
    platform: dict[str, Any] | None = None


class _Document(BaseModel):
    """A manifest, or a list of manifests."""

    media_type: str = Field("", alias="mediaType")
    manifests: tuple[_ContentDescriptor, ...] | None = None
    config: _ContentDescriptor | None = None
    layers: tuple[_ContentDescriptor, ...] = ()


@dataclass(frozen=True)
class Layout:
    """A directory with the documents and layers of an image, which are named by their digests."""

    path: Path

    @property
    def blobs(self) -> Path:
        """The directory of the blobs."""
        return self.path / "blobs/sha256"

    def blob(self, digest: str) -> Path:
        """Return where a blob is, or would be."""
        return self.blobs / digest.removeprefix("sha256:")

    def write(self, document: Mapping[str, Any]) -> Path:
        """Write a document in its one form, and return its blob."""
        content = _canonical_json(document)
        path = self.blob(hashlib.sha256(content).hexdigest())
        path.write_bytes(content)
        return path

    def verified_blob(self, digest: str) -> Path:
        """Return a blob whose content has the digest. Raises SupplyError."""
        named = DIGEST.fullmatch(digest)
        path = self.blob(digest)
        if named is None or not path.is_file():
            raise self.damage_error(f"{digest or 'a blob'} is missing")
        if files.sha256(path) != named[1]:
            raise self.damage_error(f"{digest} has other content")
        return path

    def document(self, digest: str) -> _Document:
        """Read a manifest, or a list of manifests. Raises SupplyError."""
        try:
            content = self.verified_blob(digest).read_bytes()[:LARGEST_DOCUMENT]
            return _Document.model_validate_json(content)
        except ValueError as fault:
            raise self.damage_error(f"{digest} is not an image's manifest") from fault

    def manifest(self, digest: str) -> ImageManifest:
        """Return the manifest that a digest names, for this machine's kind of processor.

        A digest may also name a list of manifests, one for each kind. While the one that is wanted
        is not here yet, only its digest is known. Raises SupplyError.
        """
        document = self.document(digest)
        if document.manifests is not None:
            machine = MACHINES.get(platform.machine(), platform.machine())
            wanted = {"os": "linux", "architecture": machine}
            fitting = (
                part
                for part in document.manifests
                if (part.platform or {}).items() >= wanted.items()
            )
            chosen = next(fitting, None)
            if chosen is None:
                raise self.damage_error(f"it has no image for Linux on {machine}")
            digest = chosen.digest
            if not self.blob(digest).exists():
                return ImageManifest(digest)
            document = self.document(digest)
        if document.config is None:
            raise self.damage_error(f"{digest} is not an image's manifest")
        parts = (document.config, *document.layers)
        kind = document.media_type or MANIFEST_TYPE
        return ImageManifest(digest, kind, tuple(part.digest for part in parts))

    def read_image(self, digest: str) -> KeptImage:
        """Return the image; every blob is compared with its digest. Raises SupplyError."""
        # Everything is read back: a digest in a file's name proves nothing about its content.
        manifest = self.manifest(digest)
        if manifest.digest != digest:
            manifest = self.manifest(manifest.digest)
        sizes = [self.verified_blob(part).stat().st_size for part in manifest.parts]
        return KeptImage(digest, manifest, self.path, sum(sizes))

    def move_into(self, digest: str, vault: Path) -> KeptImage:
        """Complete the layout with its index, and give it its place; verify all of it.

        Raises SupplyError if a blob is missing or damaged.
        """
        document = self.document(digest)
        usual = MANIFEST_TYPE if document.manifests is None else INDEX_TYPE
        entry = _descriptor(document.media_type or usual, self.blob(digest))
        index = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [entry]}
        (self.path / "index.json").write_bytes(_canonical_json(index))
        (self.path / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}', "ascii")
        image = self.read_image(digest)
        final = path_of(vault, digest)
        # An image that is there already may be damaged; the new one, which is not, replaces it.
        files.remove(final)
        self.path.rename(final)
        return replace(image, layout=final)

    def damage_error(self, why: str) -> SupplyError:
        """Return the error for a layout that is not as it should be."""
        return SupplyError(
            f"The container image in the vault is damaged: {why}",
            remedy=f"Remove {shell_word(str(self.path))}, and bring the image again: "
            f"'{invoke('image --pull')}', or the way it came by.",
            where=self.path,
        )


def path_of(vault: Path, digest: str) -> Path:
    """Return where an image is kept."""
    return vault / "images" / digest.removeprefix("sha256:")


def find_image(vault: Path, digest: str) -> KeptImage:
    """Return an image of the vault; every blob is compared with its digest.

    Raises SupplyError if it is not there, or damaged.
    """
    layout = path_of(vault, digest)
    if not layout.is_dir():
        raise missing_error(vault, digest)
    return Layout(layout).read_image(digest)


def missing_error(vault: Path, digest: str) -> SupplyError:
    """Return the error for an image that the vault does not have."""
    return SupplyError(
        f"The container image {digest} is not in the vault",
        remedy=f"Pull it with '{invoke('image --pull')}', build it from its Containerfile with "
        f"'{invoke('image --build')}', import it with invoke image --add ROOTFS.tar, or copy its "
        f"OCI layout: skopeo copy --preserve-digests docker://NAME@{digest} "
        f"{shell_word(f'oci:{path_of(vault, digest)}')}",
    )


def import_tar(root: Path, vault: Path) -> KeptImage:
    """Make an image of a file system in a tar file; the same bytes give the same digest.

    Raises SupplyError if the file cannot be read.
    """
    with new_layout(vault) as incoming:
        try:
            layer = _copy_layer(root, incoming)
        except (OSError, *unpacking.BROKEN) as fault:
            raise SupplyError(
                f"{root} is not a tar file that can be read: {fault}",
                remedy="Make one: tar -C ROOT -cf rootfs.tar .",
            ) from fault
        machine = platform.machine()
        # A date or a host's name would give each import of the same file another digest.
        config = incoming.write(
            {
                "created": "1970-01-01T00:00:00Z",
                "architecture": MACHINES.get(machine, machine),
                "os": "linux",
                "config": {},
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.name}"]},
            }
        )
        manifest = incoming.write(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST_TYPE,
                "config": _descriptor(CONFIG_TYPE, config),
                "layers": [_descriptor(LAYER_TYPE, layer)],
            }
        )
        return incoming.move_into(f"sha256:{manifest.name}", vault)


def import_layout(layout: Path, vault: Path) -> KeptImage:
    """Move an OCI layout with one image into the vault; verify all of it.

    Raises SupplyError if it is damaged.
    """
    oci_layout = Layout(layout)
    try:
        index = (layout / "index.json").read_bytes()[:LARGEST_DOCUMENT]
        digest = str(json_text.parse(index)["manifests"][0]["digest"])
    # Whoever made the layout may have written anything.
    except (OSError, ValueError, LookupError, TypeError) as fault:
        raise oci_layout.damage_error("it has no index that can be read") from fault
    return oci_layout.move_into(digest, vault)


def import_blobs(blobs: Mapping[str, Path], digest: str, vault: Path) -> KeptImage:
    """Move the blobs of an image, by their SHA-256, into the vault; verify all of them.

    Raises SupplyError if one is missing or damaged.
    """
    with new_layout(vault) as incoming:
        for name, path in blobs.items():
            files.move(path, incoming.blob(name))
        return incoming.move_into(digest, vault)


@contextmanager
def new_layout(vault: Path) -> Iterator[Layout]:
    """Give an empty layout next to the images, which `move_into` gives its place.

    Whatever is still there at the end is removed.
    """
    # Its name is new: another build may bring an image at the same time.
    with files.scratch_directory(vault / "images", "incoming-") as incoming:
        layout = Layout(incoming)
        layout.blobs.mkdir(parents=True)
        yield layout


def _copy_layer(root: Path, layout: Layout) -> Path:
    """Copy a tar file among the blobs, unpacked; return where it is now."""
    copied = layout.blobs / "layer"
    # A layer's digest is that of the unpacked tar: gzip gives other bytes with each version.
    with files.open_unpacked(root) as source, copied.open("wb") as output:
        shutil.copyfileobj(source, output, files.CHUNK)
    # All of it: an engine would find out in the middle of a build, and name the layer only.
    with unpacking.Tar.open(copied, "r:") as layer:
        collections.deque(unpacking.members(layer), maxlen=0)
    return copied.rename(layout.blob(files.sha256(copied)))


def _canonical_json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _descriptor(kind: str, path: Path) -> dict[str, Any]:
    return {"mediaType": kind, "digest": f"sha256:{path.name}", "size": path.stat().st_size}
