"""Space from the build cache: what was used longest ago goes first."""

import time
from pathlib import Path

from tfwright.tools.cache.store import YOUNG_SECONDS, files_below


def size(folder: Path) -> int:
    """Return the bytes of a cache."""
    return sum(file.size for file in files_below(str(folder)))


def trim(folder: Path, limit: int) -> int:
    """Remove the files that were used longest ago, until `limit` bytes are left; return the rest.

    An entry and its blobs are separate files. The cache takes a missing one for a miss, so that any
    of them may go, but what was used just now belongs to a build that runs.
    """
    # A tuple sorts by its first field, the time of use.
    found = sorted(files_below(str(folder)))
    total = sum(file.size for file in found)
    young = time.time() - YOUNG_SECONDS
    for file in found:
        if total <= limit or file.used > young:
            break
        Path(file.path).unlink(missing_ok=True)
        total -= file.size
    return total
