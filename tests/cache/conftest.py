"""A cache in a directory of its own."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cache.backend import Backend, BackendHandler

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


@pytest.fixture
def backend() -> Iterator[Backend]:
    """Serve a cache server on loopback."""
    backend = Backend()
    handler = type("Handler", (BackendHandler,), {"backend": backend})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        backend.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield backend
        server.shutdown()
