"""Container images by recipe: what is refused, and what is listed."""

import io
import tarfile
from pathlib import Path

import pytest

from tfwright.errors import RecipeError
from tfwright.image import images as image
from tfwright.pipeline.job import RecipeJob


def test_a_recipe_without_a_containerfile_is_told_which_key_to_add(job: RecipeJob) -> None:
    with pytest.raises(RecipeError, match="small names no Containerfile") as found:
        image.build(job, "small")
    assert "[host.image]" in found.value.remedy


def test_a_recipe_without_an_image_has_none_to_pull(job: RecipeJob) -> None:
    with pytest.raises(RecipeError, match="names no container image") as found:
        image.pull(job, "small")
    assert "[host.image] with name and digest" in found.value.remedy


def test_a_damaged_image_is_left_out_of_the_list(tmp_path: Path) -> None:
    kept = []
    for name in ("one", "two"):
        root = tmp_path / f"{name}.tar"
        with tarfile.open(root, "w") as archive:
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, io.BytesIO(b"abc"))
        kept.append(image.add(root, tmp_path / "vault"))
    sound, damaged = kept
    damaged.blobs()[0].write_bytes(b"other")
    assert image.listed(tmp_path / "vault") == (sound,)
