"""JSON of strangers, and of our own files, which a disk or a person may have damaged."""

import json
from pathlib import Path
from typing import Any

from tfwright.documents import opening

LARGEST = 64 * 2**20
"""Bytes of a file that `record` reads; the largest of ours have some."""


def parsed(content: str | bytes) -> Any:  # noqa: ANN401 as json.loads
    """Return a JSON value. Raises ValueError and nothing else, whatever the content is."""
    try:
        return json.loads(content)  # noqa: TID251 the one place
    except RecursionError as fault:
        # A hundred kilobytes of "[" are enough, and no handler of ValueError would see it.
        raise ValueError(
            "brackets within brackets, too deep to be read"
        ) from fault


def record(path: Path) -> dict[str, Any]:
    """Return what an object in a file of ours holds; nothing where it is missing or damaged."""
    try:
        with opening.plain(path) as stream:
            found = parsed(stream.read(LARGEST))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
