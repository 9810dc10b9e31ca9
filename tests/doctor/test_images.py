"""What is said of a container image that a host lacks."""

from pathlib import Path

import pytest

from tfwright.doctor import images
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.tools.container import engine

IMAGE = {"name": "mine", "digest": "sha256:" + "1" * 64}


def said_of(image: dict[str, str], recipe: Recipe, build_out: Path) -> list[str]:
    data = recipe.model_dump()
    data["host"]["image"] = image
    own = Recipe.model_validate(data)
    host_file = HostFile(build_out=build_out)
    return [f"{found} {found.remedy}" for found in images.findings(own, host_file)]


@pytest.fixture
def findings(recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what is said of an image of one's own, on a host without an engine."""
    monkeypatch.setattr(engine, "is_installed", lambda _: False)
    return said_of(IMAGE, recipe, tmp_path)


def test_an_engine_that_is_missing_is_named_with_its_package(findings: list[str]) -> None:
    assert "no podman" in findings[0]
    assert "apt install podman" in findings[0]


def test_an_image_of_ones_own_is_looked_for_in_no_registry(findings: list[str]) -> None:
    assert "no container image; no registry has it" in findings[1]
    assert "invoke image --add ROOTFS.tar" in findings[1]
    assert "invoke bundle --unpack FILE" in findings[1]


def test_an_image_with_a_containerfile_is_built_from_it(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "is_installed", lambda _: True)
    image = {**IMAGE, "containerfile": "mine.Containerfile"}
    (only,) = said_of(image, recipe, tmp_path)
    assert "invoke image --recipe small --build" in only
    assert "--add ROOTFS.tar" not in only
