"""Images in the vault: made from a tar file, verified blob by blob."""

import gzip
import hashlib
import json
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file, make_folder, make_tar

from tfwright.errors import SupplyError
from tfwright.tools.container import image
from tfwright.tools.container.image import KeptImage


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the tar file of a file system with one file."""
    return make_tar(tmp_path / "root.tar", {"etc/os-release": "NAME="})


def copied(added: KeptImage, folder: Path) -> dict[str, Path]:
    """Copy the blobs of an image, as a bundle does; return them by their names."""
    return {blob.name: make_file(folder / blob.name, blob.read_bytes()) for blob in added.blobs()}


def test_the_same_tar_gives_the_same_digest_by_which_it_is_found(
    root: Path, tmp_path: Path
) -> None:
    packed = make_file(tmp_path / "root.tar.gz", gzip.compress(root.read_bytes()))
    first = image.import_tar(root, tmp_path / "one")
    second = image.import_tar(packed, tmp_path / "two")
    assert (first.digest, first.config) == (second.digest, second.config)
    assert image.find_image(tmp_path / "one", first.digest) == first


def test_a_bundle_carries_an_image_by_its_blobs(root: Path, tmp_path: Path) -> None:
    added = image.import_tar(root, tmp_path / "one")
    carried = copied(added, tmp_path)
    assert image.import_blobs(carried, added.digest, tmp_path / "two").digest == added.digest


def test_a_bundle_without_the_manifest_is_refused(tmp_path: Path) -> None:
    with fails(SupplyError, "missing"):
        image.import_blobs({}, "sha256:" + "0" * 64, tmp_path)


def test_a_damaged_copy_does_not_replace_an_image_that_is_whole(root: Path, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    added = image.import_tar(root, vault)
    carried = copied(added, tmp_path)
    # The layer: a configuration and a manifest are smaller.
    make_file(max(carried.values(), key=lambda path: path.stat().st_size), b"other")
    with fails(SupplyError, "content"):
        image.import_blobs(carried, added.digest, vault)
    assert image.find_image(vault, added.digest) == added
    # Nothing of the damaged copy is left either.
    assert [path.name for path in (vault / "images").iterdir()] == [added.layout.name]


def test_a_damaged_layer_is_refused(root: Path, tmp_path: Path) -> None:
    added = image.import_tar(root, tmp_path)
    layer = max((added.layout / "blobs/sha256").iterdir(), key=lambda path: path.stat().st_size)
    layer.write_bytes(layer.read_bytes()[:-1] + b"x")
    with fails(SupplyError, "content"):
        image.find_image(tmp_path, added.digest)


@pytest.mark.parametrize("document", [b"", b"{}", b"[]", b"not JSON"])
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, document: bytes) -> None:
    digest = hashlib.sha256(document).hexdigest()
    blobs = make_folder(image.path_of(tmp_path, f"sha256:{digest}") / "blobs/sha256")
    (blobs / digest).write_bytes(document)
    with fails(SupplyError, "damaged"):
        image.find_image(tmp_path, f"sha256:{digest}")


@pytest.mark.parametrize(
    "document",
    [
        {"config": {"digest": "sha256:" + "0" * 64}, "layers": 5},
        {"config": 5, "layers": None},
        {"manifests": [{"platform": "linux"}, {"platform": ["linux"]}, 5]},
        {
            "manifests": [
                {
                    "platform": {"architecture": image.MACHINES["x86_64"], "os": "linux"},
                    "digest": "../" * 3000,
                }
            ]
        },
    ],
)
def test_a_manifest_of_other_types_is_refused(tmp_path: Path, document: dict[str, object]) -> None:
    content = json.dumps(document).encode()
    name = hashlib.sha256(content).hexdigest()
    (tmp_path / "blob").write_bytes(content)
    with fails(SupplyError, "damaged"):
        image.import_blobs({name: tmp_path / "blob"}, f"sha256:{name}", tmp_path / "vault")


def test_a_file_that_is_no_tar_is_refused(tmp_path: Path) -> None:
    for root in (tmp_path / "missing", make_file(tmp_path / "text", b"x" * 3000)):
        with fails(SupplyError, "file"):
            image.import_tar(root, tmp_path)
