"""The ways to print: a table, JSON, a line for people."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tfwright.printable import printable, printable_lines


def table(cells: Sequence[tuple[str, ...]]) -> None:
    """Print rows of equally many cells, the heads among them, in columns."""
    cells = [tuple(map(printable, cell)) for cell in cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for cell in cells:
        print(
            "  ".join(text.ljust(width) for text, width in zip(cell, widths, strict=True)).rstrip()
        )


def as_json(value: object) -> None:
    """Print a value for machines."""
    print(json.dumps(value, indent=2, default=str))


def tell(text: str) -> None:
    """Write a line for people, on stderr."""
    sys.stderr.write(printable_lines(text).replace(str(Path.cwd()) + "/", "") + "\n")
