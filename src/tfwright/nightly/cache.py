"""Space from the build cache: what was used longest ago goes first."""

from pathlib import Path

from tfwright.tools.cache.store import files_below, remove_oldest


def size(folder: Path) -> int:
    """Return the bytes of a cache."""
    return sum(file.size for file in files_below(str(folder)))


def trim(folder: Path, limit: int) -> int:
    """Remove what was used longest ago until `limit` bytes are left; return the bytes left."""
    return remove_oldest(files_below(str(folder)), limit)
