"""What is written down of the cache's part in a build, and which compilers it keeps apart."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tfwright.documents.recipe import CompileTable, ConfigureTable
from tfwright.pipeline import caching
from tfwright.pipeline.caching import CompilerChoice, OpenCache
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Configured, HostFacts
from tfwright.pipeline.stage import Artefact
from tfwright.tools.cache import toolchain
from tfwright.tools.cache.build_cache import BuildCache, Trust
from tfwright.tools.cache.private_cache import PrivateCache
from tfwright.tools.cache.store import CacheDirectory
from tfwright.tools.cache.tally import CacheUse
from tfwright.tools.cache.toolchain import Toolchain

TOOLCHAIN = "a" * 64


@pytest.fixture
def hit_once(job: RecipeJob, tmp_path: Path) -> OpenCache:
    """Return the cache of a run of Bazel that took one result."""
    directory = CacheDirectory(tmp_path / "cache", 1 << 30)
    cache = BuildCache(directory, Trust(TOOLCHAIN, b"s" * 32))
    job.places.tree.mkdir(parents=True, exist_ok=True)
    private = PrivateCache(cache, job.places.own / "disk-cache", job.places.tree)
    private.lay_out()
    cache.tally.count("lookups")
    cache.hit("b" * 64, "c" * 64)
    return OpenCache(cache, private, TOOLCHAIN, spoiled_before=False)


def recorded(job: RecipeJob, cache: OpenCache) -> CacheUse:
    use = caching.recorded(job, cache)
    assert use
    return use


def test_the_runs_of_an_interrupted_build_are_counted_together(
    job: RecipeJob, hit_once: OpenCache
) -> None:
    recorded(job, hit_once)
    assert recorded(job, hit_once).hits == 2


def test_a_build_from_the_beginning_counts_nothing_of_an_earlier_one(
    job: RecipeJob, hit_once: OpenCache
) -> None:
    recorded(job, hit_once)
    caching.forget(job)
    assert recorded(job, hit_once).hits == 1


@pytest.mark.parametrize(
    "place",
    [
        {"compiling": {"env": {"CC": "/opt/gcc-11"}}},
        {"compiling": {"flags": ["--action_env=CLANG_COMPILER_PATH=/opt/gcc-11"]}},
        {"answering": {"answers": {"GCC_HOST_COMPILER_PATH": "/opt/gcc-11"}}},
        {"exported": {"GCC_HOST_COMPILER_PATH": "/opt/gcc-11"}},
        # Where the host file names nvcc's compiler, only this file has it.
        {"bazelrc": 'build --action_env GCC_HOST_COMPILER_PATH="/opt/gcc-11"\n'},
    ],
)
def test_a_compiler_is_part_of_the_toolchain_wherever_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: dict[str, Any]
) -> None:
    def of_host(compilers: Sequence[str], *_: object, **__: object) -> Toolchain:
        return Toolchain(dict.fromkeys(compilers, ""))

    monkeypatch.setattr(toolchain, "of_host", of_host)
    bazelrc = tmp_path / "bazelrc"
    bazelrc.write_text(place.get("bazelrc", ""))
    choice = CompilerChoice(
        CompileTable.model_validate(place.get("compiling", {})),
        ConfigureTable.model_validate(place.get("answering", {})),
        HostFacts(
            system="Linux",
            machine="x86_64",
            glibc="2.36",
            interpreter=Path(sys.executable),
            python="3.11.2",
            compiler="",
        ),
        Path(sys.executable),
        Configured(
            bazelrc=Artefact.of(bazelrc),
            asked=(),
            never_asked=(),
            exported=place.get("exported", {}),
        ),
    )
    assert "/opt/gcc-11" in choice.toolchain(tmp_path).parts
