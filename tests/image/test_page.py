"""What `invoke image` prints."""

from pathlib import Path

from tests.making import Read

from tfwright.image import command
from tfwright.terminal.answer import json_value
from tfwright.tools.container.image import ImageManifest, KeptImage

DIGEST = f"sha256:{'a' * 64}"
OTHER = f"sha256:{'b' * 64}"
IMAGE = KeptImage(DIGEST, ImageManifest(DIGEST, parts=(OTHER,)), Path("layout"), 5 << 20)


def test_an_image_is_listed_by_the_digest_that_recipes_name(out: Read) -> None:
    command.show_images([IMAGE])
    row = out().splitlines()[-1]
    assert row.split() == [DIGEST, "5"]


def test_images_in_json_name_their_configuration() -> None:
    document = json_value(command.image_data(IMAGE))
    assert document["config"] == OTHER
    assert document["size"] == 5 << 20


def test_a_vault_without_images_says_so(out: Read) -> None:
    command.show_images([])
    assert "holds no container image" in out()


def test_an_image_that_is_not_the_pinned_one_comes_with_the_line_to_write(err: Read) -> None:
    command.show_built(IMAGE, "mine", OTHER)
    shown = err()
    assert f"mine pins another image: {OTHER}" in shown
    assert f'digest = "{DIGEST}"' in shown


def test_an_image_that_is_the_pinned_one_needs_no_change(err: Read) -> None:
    command.show_built(IMAGE, "mine", DIGEST)
    assert err() == "mine pins this image.\n"
