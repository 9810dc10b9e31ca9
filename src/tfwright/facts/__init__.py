"""What goes with what: GPUs, releases of TensorFlow, CUDA, compilers, distributions.

Each table is a TOML file, one row a fact, with its source; every command reads these and no
other. Where a table ends, an answer is "unknown", and never "no" or "fits".
"""

import functools
import tomllib
from pathlib import Path
from typing import Any


def freeze(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose lists are tuples, as frozen objects need them."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}


@functools.cache
def read(table: Path) -> dict[str, Any]:
    """Return a table by its file, which is read once."""
    return tomllib.loads(table.read_text("utf-8"))
