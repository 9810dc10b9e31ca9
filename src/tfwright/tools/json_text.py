"""JSON of strangers, and of our own files, which a disk or a person may have damaged."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel

from tfwright.documents import filesystem

Model = TypeVar("Model", bound=BaseModel)
LONGEST_NUMBER = 100
"""Digits of an integer."""
LARGEST = 64 * 2**20
"""Bytes of a file that `load_object` reads; the largest of ours have some."""


def parse(content: str | bytes) -> Any:  # noqa: ANN401 as json.loads
    """Return a JSON value. Raises ValueError and nothing else, whatever the content is.

    Every number in it is one that a float holds.
    """
    try:
        return json.loads(  # noqa: TID251 the one place
            content,
            parse_int=lambda text: (
                int(text) if len(text) <= LONGEST_NUMBER else _refuse_number(text)
            ),
            parse_float=lambda text: (
                one if math.isfinite(one := float(text)) else _refuse_number(text)
            ),
            parse_constant=_refuse_number,
        )
    except RecursionError as fault:
        # A hundred kilobytes of "[" are enough, and no handler of ValueError would see it.
        raise ValueError("brackets within brackets, too deep to be read") from fault


# What is done with a larger number ends in an OverflowError, which no handler of ValueError sees.


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:LONGEST_NUMBER]} is not a number that can be used")


def digest(content: object) -> str:
    """Return a digest of anything that JSON can say, in whatever order a table states it."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def load_object(path: Path) -> dict[str, Any]:
    """Return what an object in a file of ours holds; nothing where it is missing or damaged."""
    try:
        with filesystem.open_file(path) as stream:
            found = parse(stream.read(LARGEST))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def load_or_none(path: Path, model: type[Model]) -> Model | None:
    """Return what a file of ours holds; None if it is missing, damaged or of another version."""
    try:
        with filesystem.open_file(path) as stream:
            return model.model_validate_json(stream.read())
    except (OSError, ValueError):
        return None
