"""Container images by recipe: what is refused, and what is listed."""

import io
import tarfile
from pathlib import Path

import pytest

from tfwright.image.images import Images
from tfwright.tools.container import image


@pytest.fixture
def images(tmp_path: Path) -> Images:
    return Images(tmp_path / "vault", tmp_path / "log")


def test_a_damaged_image_is_left_out_of_the_list(images: Images, tmp_path: Path) -> None:
    kept = []
    for name in ("one", "two"):
        root = tmp_path / f"{name}.tar"
        with tarfile.open(root, "w") as archive:
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, io.BytesIO(b"abc"))
        kept.append(image.add(root, images.vault))
    sound, damaged = kept
    damaged.blobs()[0].write_bytes(b"other")
    assert images.listed() == (sound,)
