"""What is said of a container image that a host lacks."""

from pathlib import Path

import pytest

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.host import images
from tfwright.tools.container import engine


@pytest.fixture
def findings(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Return what is said of an image of one's own, on a host without an engine."""
    monkeypatch.setattr(engine, "installed", lambda _: False)
    data = recipe.model_dump()
    data["host"]["image"] = {"name": "mine", "digest": "sha256:" + "1" * 64}
    own = Recipe.model_validate(data)
    host_file = HostFile(build_out=tmp_path)
    return [
        f"{found} {found.remedy}" for found in images.findings(own, host_file)
    ]


def test_an_engine_that_is_missing_is_named_with_its_package(
    findings: list[str],
) -> None:
    assert "no podman" in findings[0]
    assert "apt install podman" in findings[0]


def test_an_image_of_ones_own_is_looked_for_in_no_registry(
    findings: list[str],
) -> None:
    assert "no container image; no registry has it" in findings[1]
    assert "invoke image --add ROOTFS.tar" in findings[1]
    assert "invoke bundle --unpack FILE" in findings[1]
