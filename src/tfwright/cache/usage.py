"""`invoke cache`: what the build cache holds, and what it did for the last builds."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents.host_file import HostFile
from tfwright.tools.cache import toolchain, usage
from tfwright.tools.cache.store import GIB, CacheStore
from tfwright.tools.cache.usage import CachedBuild

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


def look(settings: HostFile) -> CacheState:
    """Look at the cache of this host; nothing is changed.

    Raises HostError if its directory cannot be read.
    """
    root = settings.cache_directory
    limit = int(settings.cache.size * GIB)
    builds = tuple(reversed(usage.read(root)))[:SHOWN]
    # Looking must not make a directory: a host without a cache has none.
    if not root.is_dir():
        return CacheState(root, 0, limit, settings.cache.server, (), ())
    directory = CacheStore(root, limit)
    toolchains = tuple(
        KeptToolchain(digest, entries, toolchain.kept(root, digest).parts)
        for digest, entries in directory.toolchains().items()
    )
    held = directory.held
    return CacheState(root, held, limit, settings.cache.server, toolchains, builds)
