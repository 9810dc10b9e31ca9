"""Builds with a cache in a directory of its own."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.cache.backend import Backend, BackendHandler
from tests.cache.builds import ACTION, SEAL, Begin, Build
from tests.making import make_file
from tests.serving import serving

from tfwright.tools.cache.private import PrivateCache
from tfwright.tools.cache.remote import RemoteCache
from tfwright.tools.cache.store import CacheStore, Seal

MakeRemote = Callable[[CacheStore, Seal, PrivateCache], RemoteCache]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    make_file(tmp_path / "tree/a.cc", "int a;\n")
    return tmp_path / "tree"


@pytest.fixture
def begin(tmp_path: Path, tree: Path) -> Begin:
    """Return what begins a build of a host, as if it were a process of its own."""
    numbers = count()

    def begun(
        host: str = "host",
        seal: Seal = SEAL,
        *,
        flat: bool = True,
        limit: int = 1 << 30,
        remote: MakeRemote | None = None,
    ) -> Build:
        store = CacheStore(tmp_path / host / "cache", limit)
        place = store.root / f"private/{next(numbers)}"
        private = PrivateCache(store, seal, place, tree, flat=flat)
        private.lay_out(remote(store, seal, private) if remote else None)
        return Build(private, store, flat)

    return begun


@pytest.fixture
def store(begin: Begin) -> CacheStore:
    """Return the cache of a host that holds the result of one action."""
    build = begin()
    build.add(ACTION, b"object")
    build.end()
    return build.store


@pytest.fixture
def backend() -> Iterator[Backend]:
    """Serve a cache server on loopback."""
    backend = Backend()
    handler = type("Handler", (BackendHandler,), {"backend": backend})
    with serving(handler) as backend.url:
        yield backend
