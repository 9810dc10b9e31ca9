"""Parts of toolkits, as `invoke toolkit` records them."""

from pathlib import Path

from tfwright.toolkit import tree
from tfwright.toolkit.tree import InstalledPart


def part_of(made: Path, version: str = "11.8") -> InstalledPart:
    """Return the part that consists of the files below a folder."""
    return InstalledPart(
        version=version,
        way="by hand",
        sources={"x": "0" * 64},
        licence_accepted_by="ada",
        on="2026-01-01",
        files=tree.content(made),
    )
