"""Which packages a distribution has, from distributions.toml."""

import functools
import tomllib
from pathlib import Path
from typing import Literal

TABLE = Path(__file__).with_suffix(".toml")
Kind = Literal["gcc", "clang", "python"]


def versions(release: str, kind: Kind) -> list[str] | None:
    """Return the versions of a program that a distribution packages; None for an unknown one.

    `release` is the name as /etc/os-release has it: ``Debian GNU/Linux 12 (bookworm)``.
    """
    row = _row(release)
    return None if row is None else list(row[kind])


def driver(release: str) -> str:
    """Return the line of NVIDIA's driver that a distribution packages; empty if unknown."""
    row = _row(release)
    return str(row["driver"]) if row else ""


def short_name(suite: str) -> str:
    """Return how a suite of Debian is named in file names, as ``debian12``; empty if unknown."""
    rows = _table().items()
    return next(
        ("debian" + name.split()[-1] for name, row in rows if row.get("suite") == suite), ""
    )


def _row(release: str) -> dict[str, list[str] | str] | None:
    return next((row for name, row in _table().items() if release.startswith(name)), None)


@functools.cache
def _table() -> dict[str, dict[str, list[str] | str]]:
    return tomllib.loads(TABLE.read_text("utf-8"))
