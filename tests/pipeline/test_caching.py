"""What is written down of the cache's part in a build."""

from pathlib import Path

import pytest

from tfwright.pipeline import caching
from tfwright.pipeline.caching import OpenCache
from tfwright.pipeline.job import BuildRequest
from tfwright.tools.cache.build_cache import BuildCache, Trust
from tfwright.tools.cache.private_cache import PrivateCache
from tfwright.tools.cache.store import CacheDirectory
from tfwright.tools.cache.tally import CacheUse

TOOLCHAIN = "a" * 64


@pytest.fixture
def hit_once(job: BuildRequest, tmp_path: Path) -> OpenCache:
    """Return the cache of a run of Bazel that took one result."""
    directory = CacheDirectory(tmp_path / "cache", 1 << 30)
    cache = BuildCache(directory, Trust(TOOLCHAIN, b"s" * 32))
    private = PrivateCache(cache, job.places.own / "disk-cache")
    private.lay_out()
    cache.tally.count("lookups")
    cache.hit("b" * 64, "c" * 64)
    return OpenCache(cache, private, TOOLCHAIN, spoiled_before=False)


def recorded(job: BuildRequest, cache: OpenCache) -> CacheUse:
    use = caching.recorded(job, cache)
    assert use
    return use


def test_the_runs_of_an_interrupted_build_are_counted_together(
    job: BuildRequest, hit_once: OpenCache
) -> None:
    recorded(job, hit_once)
    assert recorded(job, hit_once).hits == 2


def test_a_build_from_the_beginning_counts_nothing_of_an_earlier_one(
    job: BuildRequest, hit_once: OpenCache
) -> None:
    recorded(job, hit_once)
    caching.forget(job)
    assert recorded(job, hit_once).hits == 1
