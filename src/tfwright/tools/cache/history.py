"""What the cache did for the last builds, as lines of JSON next to it."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from tfwright.tools import files
from tfwright.tools.cache.tally import CacheUse

KEPT = 50
"""Builds that are remembered."""


class CachedBuild(BaseModel):
    """One run of Bazel that the cache took part in."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    recipe: str
    finished: Annotated[float, Field(ge=0, lt=253_402_300_800)]
    """Seconds since 1970, before the year 10000, where calendars end."""
    use: CacheUse


def add(root: Path, build: CachedBuild) -> None:
    """Add a build. Raises OSError."""
    with _file(root).open("a", encoding="utf-8") as stream:
        stream.write(build.model_dump_json() + "\n")


def read(root: Path) -> tuple[CachedBuild, ...]:
    """Return the last builds, the newest last; lines that cannot be read are left out."""
    try:
        lines = files.text(_file(root)).splitlines()[-KEPT:]
    except OSError:
        return ()
    return tuple(filter(None, map(_build, lines)))


def _build(line: str) -> CachedBuild | None:
    try:
        return CachedBuild.model_validate_json(line)
    except ValueError:
        # Two builds may write at once, and a kill may cut a line off.
        return None


def _file(root: Path) -> Path:
    return root / "builds.jsonl"
