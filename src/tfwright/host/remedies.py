"""What to do about a finding, with the commands of the host's own system."""

import functools
import tomllib
from pathlib import Path

TABLE = Path(__file__).with_suffix(".toml")


def of(trouble: str, installer: str, **fields: str) -> str:
    """Return the remedy for a trouble, with its fields filled in."""
    # Every trouble has "other": the words for a system whose installer is unknown.
    ways = _table()[trouble]
    return ways.get(installer, ways["other"]).strip().format(**fields)


@functools.cache
def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads(TABLE.read_text("utf-8"))
