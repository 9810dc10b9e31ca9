"""Container images, as people read them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Column

if TYPE_CHECKING:
    from tfwright.tools.container.image import KeptImage

COLUMNS = (
    Column("digest, for [host] image of a recipe", cut="never"),
    Column("MiB", right=True, rank=1),
)


def show_images(images: "Sequence[KeptImage]", *, as_json: bool) -> None:
    """Print the digests and sizes of images."""
    if as_json:
        text.as_json([vars(image) for image in images])
        return
    if not images:
        text.line("The vault holds no container image.")
        return
    # The digest whole: recipes name images by it.
    text.table(COLUMNS, [(image.digest, str(image.size >> 20)) for image in images])
