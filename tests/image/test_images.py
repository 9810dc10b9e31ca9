"""Container images by recipe: what is refused, and what is listed."""

from pathlib import Path

import pytest
from tests.making import make_tar

from tfwright.image.images import Images
from tfwright.tools.container import image


@pytest.fixture
def images(tmp_path: Path) -> Images:
    return Images(tmp_path / "vault", tmp_path / "log")


def test_a_damaged_image_is_left_out_of_the_list(images: Images, tmp_path: Path) -> None:
    kept = []
    for name in ("one", "two"):
        root = make_tar(tmp_path / f"{name}.tar", {name: "abc"})
        kept.append(image.add(root, images.vault))
    sound, damaged = kept
    damaged.blobs()[0].write_bytes(b"other")
    assert images.listed() == (sound,)
