"""What to do about a finding, with the commands of the host's own system."""

import functools
import tomllib
from collections.abc import Sequence
from pathlib import Path

TABLE = Path(__file__).with_suffix(".toml")


def of(trouble: str, systems: Sequence[str], **fields: str) -> str:
    """Return the remedy for a trouble, with its fields filled in, by the first way that it has."""
    # Every trouble has "other": the words for a system whose installer is unknown.
    known = _table()[trouble]
    way = next((way for way in systems if way in known), "other")
    return known[way].strip().format(**fields)


@functools.cache
def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads(TABLE.read_text("utf-8"))
