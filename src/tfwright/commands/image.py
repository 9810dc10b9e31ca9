"""Container images in the vault, by digest."""

from pathlib import Path

from tfwright.errors import SupplyError
from tfwright.tools.container import image
from tfwright.tools.container.image import KeptImage


def add(root: Path, vault: Path) -> KeptImage:
    """Make an image of a file system in a tar file. Raises SupplyError if it cannot be read."""
    return image.add(root, vault)


def listed(vault: Path) -> tuple[KeptImage, ...]:
    """Return the images of the vault that are whole."""
    found = []
    for layout in sorted((vault / "images").glob("*")):
        try:
            found.append(image.kept(vault, f"sha256:{layout.name}"))
        except SupplyError:
            # A build that names it says what is wrong with it.
            continue
    return tuple(found)
