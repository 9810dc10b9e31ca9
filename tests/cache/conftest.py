"""A cache in a directory of its own."""

from pathlib import Path

import pytest

from tfwright.tools.cache.build_cache import BuildCache, Trust
from tfwright.tools.cache.store import CacheDirectory


@pytest.fixture
def directory(tmp_path: Path) -> CacheDirectory:
    return CacheDirectory(tmp_path / "cache", 1 << 30)


@pytest.fixture
def trust() -> Trust:
    return Trust("a" * 64, b"s" * 32)


@pytest.fixture
def cache(directory: CacheDirectory, trust: Trust) -> BuildCache:
    return BuildCache(directory, trust)
