"""Container images by recipe: what is refused, and what is listed."""

from pathlib import Path

from tests.making import make_tar

from tfwright.image import images
from tfwright.tools.container import image


def test_a_damaged_image_is_left_out_of_the_list(tmp_path: Path) -> None:
    kept = []
    for name in ("one", "two"):
        root = make_tar(tmp_path / f"{name}.tar", {name: "abc"})
        kept.append(image.import_tar(root, tmp_path))
    sound, damaged = kept
    damaged.blobs()[0].write_bytes(b"other")
    assert images.intact_images(tmp_path) == (sound,)
