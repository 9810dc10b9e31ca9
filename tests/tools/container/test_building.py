"""Images from a Containerfile: only with pinned bases, and the same image from the same steps."""

import shutil
from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.errors import RecipeError
from tfwright.image import images
from tfwright.tools.container import building

PINNED = "debian@sha256:" + "a" * 64


def containerfile(folder: Path, *lines: str) -> Path:
    return make_file(folder / "x.Containerfile", "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    "lines",
    [
        (f"FROM {PINNED}",),
        ("FROM scratch",),
        (f"ARG BASE={PINNED}", "FROM --platform=linux/amd64 ${BASE}"),
        (f"FROM {PINNED} AS made", "FROM made"),
        ("FROM sha256:" + "b" * 64,),
        (f"FROM {PINNED} \\", "  # why", "", "  AS made", "FROM made"),
        (
            f"FROM {PINNED} AS Made",
            f"FROM {PINNED}",
            "COPY --from=made /a /b",
            "COPY --from=0 /a /b",
            "RUN --mount=type=bind,from=made,target=/m cp /m/a /b",
        ),
        (
            f"FROM {PINNED}",
            "RUN python3 - <<END",
            "from os import path",
            "END",
            "RUN echo --from here",
        ),
    ],
)
def test_a_base_with_a_digest_is_accepted(tmp_path: Path, lines: tuple[str, ...]) -> None:
    building.check_pins(containerfile(tmp_path, *lines))


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (("FROM debian:11",), "x.Containerfile:1: the image debian:11"),
        (("ARG BASE=debian", "from $BASE"), "x.Containerfile:2: the image debian"),
        ((f"FROM {PINNED} AS made", "FROM other"), "x.Containerfile:2: the image other"),
        (("FROM debian:11 \\", "  AS made"), ":1: the image debian:11"),
        (("F\\", "ROM debian:11"), ":1: the image debian:11"),
        (("# a comment \\", "FROM debian:11"), ":2: the image debian:11"),
        (("\ufeffFROM debian:11",), ":1: the image debian:11"),
        (
            ("ARG BASE=debian:11", f"FROM {PINNED}", f"ARG BASE={PINNED}", "FROM $BASE"),
            ":4: the image debian:11",
        ),
        ((f"FROM {PINNED}", "RUN <<'E\\'", "E\\", "FROM debian:11"), ":4: the image debian:11"),
        (
            (f"FROM {PINNED}", "COPY --from=busybox:latest /bin/sh /sh"),
            ":2: the image busybox:latest",
        ),
        (
            (f"FROM {PINNED}", "RUN --mount=type=bind,from=busybox,target=/m /m/x"),
            ":2: the image busybox",
        ),
        (("# escape=`", "FROM debian:11 `", " AS made"), "joins lines"),
    ],
)
def test_a_base_that_can_move_is_refused_with_its_line(
    tmp_path: Path, lines: tuple[str, ...], named: str
) -> None:
    with pytest.raises(RecipeError, match=named):
        building.check_pins(containerfile(tmp_path, *lines))


@pytest.mark.slow
def test_a_file_that_no_recipe_names_gives_an_image_that_a_recipe_can_pin(tmp_path: Path) -> None:
    if not shutil.which("podman"):
        pytest.skip("podman is not installed")
    path = containerfile(tmp_path, "FROM scratch", 'LABEL made="by a test"')
    kept = building.build(path, tmp_path, tmp_path / "log")
    assert images.intact_images(tmp_path) == (kept,)
    # The recipe pins it by this digest, so the same steps must give it again.
    assert building.build(path, tmp_path, tmp_path / "log").digest == kept.digest
