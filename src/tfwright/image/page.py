"""Container images, as people read them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Column

if TYPE_CHECKING:
    from tfwright.image.images import BuiltImage
    from tfwright.tools.container.image import KeptImage

COLUMNS = (Column("digest, for [host] image of a recipe"), Column("MiB", rank=1, right=True))


def show_images(images: "Sequence[KeptImage]") -> None:
    """Print the digests and sizes of images."""
    # The digest whole: recipes name images by it.
    rows = [(image.digest, str(image.size >> 20)) for image in images]
    text.table(COLUMNS, rows, empty="The vault holds no container image.")


def show_built(built: "BuiltImage", recipe: str) -> None:
    """Say which image was built, and whether the recipe already names it."""
    show_images((built.kept,))
    if built.as_pinned:
        text.tell(f"{recipe} pins this image.", text.GOOD)
    else:
        text.tell(f"{recipe} pins another image: {built.pinned}", text.WARNING)
        text.tell(f'  do:     Write digest = "{built.kept.digest}" into its [host.image].')


def image_data(image: "KeptImage") -> dict[str, object]:
    """Return an image for machines."""
    return {
        "digest": image.digest,
        "config": image.config,
        "layout": image.layout,
        "size": image.size,
    }
