"""What the cache did for builds: counted while one runs, and kept as lines of JSON next to it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from tfwright.documents.host_file import HostFile

KEPT = 50
"""Builds that are remembered."""
HISTORY = "builds.jsonl"


class CacheUse(BaseModel):
    """How the cache took part in a build."""

    # Every build imports this, and few read or write one.
    model_config = ConfigDict(extra="forbid", defer_build=True)

    toolchain: str
    """The digest that keeps entries of other toolchains apart."""
    lookups: int = 0
    """Actions that Bazel asked for."""
    hits: int = 0
    """Actions that the cache answered, with all their files verified."""
    stored: int = 0
    """Actions whose results were added."""
    faults: dict[str, int] = {}
    """What went wrong, and became a miss: what happened = how often."""

    def count_fault(self, what: str) -> None:
        """Count something that went wrong."""
        self.faults[what] = self.faults.get(what, 0) + 1

    def plus(self, later: "CacheUse") -> "CacheUse":
        """Return the use of two runs of one build together."""
        return CacheUse(
            toolchain=later.toolchain,
            lookups=self.lookups + later.lookups,
            hits=self.hits + later.hits,
            stored=self.stored + later.stored,
            faults=dict(Counter(self.faults) + Counter(later.faults)),
        )


class CachedBuild(BaseModel):
    """One run of Bazel that the cache took part in."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    recipe: str
    finished: Annotated[float, Field(ge=0, lt=253_402_300_800)]
    """Seconds since 1970, before the year 10000, where calendars end."""
    use: CacheUse


def add(root: Path, build: CachedBuild) -> None:
    """Add a build to the history of a cache. Raises OSError."""
    with (root / HISTORY).open("a", encoding="utf-8") as stream:
        stream.write(build.model_dump_json() + "\n")


def read(root: Path) -> tuple[CachedBuild, ...]:
    """Return the last builds, the newest last; lines that cannot be read are left out."""
    from tfwright.tools import files

    try:
        lines = files.text(root / HISTORY).splitlines()[-KEPT:]
    except OSError:
        return ()
    builds = []
    for line in lines:
        # Two builds may write at once, and a kill may cut a line off.
        try:
            builds.append(CachedBuild.model_validate_json(line))
        except ValueError:
            continue
    return tuple(builds)


SHOWN = 10
"""Builds that are listed."""


@dataclass(frozen=True)
class KeptToolchain:
    """What the cache holds for one toolchain."""

    digest: str
    entries: int
    parts: Mapping[str, str]
    """What each part of it is = its digest."""


@dataclass(frozen=True)
class CacheState:
    """The state of this host's cache."""

    directory: Path
    held: int
    """Bytes."""
    limit: int
    """Bytes."""
    server: str | None
    toolchains: tuple[KeptToolchain, ...]
    builds: tuple[CachedBuild, ...]
    """The newest first."""


def cache_state(settings: "HostFile") -> CacheState:
    """Look at the cache of this host; nothing is changed.

    Raises HostError if its directory cannot be read.
    """
    # Every build imports this module, and only `invoke cache` looks.
    from tfwright.tools.cache import toolchain
    from tfwright.tools.cache.store import GIB, CacheStore

    root = settings.cache_directory
    limit = int(settings.cache.size * GIB)
    builds = tuple(reversed(read(root)))[:SHOWN]
    # Looking must not make a directory: a host without a cache has none.
    if not root.is_dir():
        return CacheState(root, 0, limit, settings.cache.server, (), ())
    directory = CacheStore(root, limit)
    toolchains = tuple(
        KeptToolchain(digest, entries, toolchain.load(root, digest))
        for digest, entries in directory.toolchains().items()
    )
    held = directory.held
    return CacheState(root, held, limit, settings.cache.server, toolchains, builds)
