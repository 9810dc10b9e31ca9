"""A cache in a directory of its own, entries as Bazel writes them, and a server that misbehaves."""

import hashlib
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tfwright.tools.cache import wire
from tfwright.tools.cache.build_cache import BuildCache, Trust
from tfwright.tools.cache.server import CacheServer
from tfwright.tools.cache.store import CacheDirectory

TOOLCHAIN = "a" * 64
ACTION = hashlib.sha256(b"an action").hexdigest()
SECRET = b"s" * 32


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def digest(content: bytes) -> bytes:
    return wire.field(1, sha256(content).encode()) + wire.integer(2, len(content))


def output(path: str, content: bytes) -> bytes:
    """Return an OutputFile in an ActionResult."""
    return wire.field(2, wire.field(1, path.encode()) + wire.field(2, digest(content)))


def put(cache: BuildCache, action: str, *contents: bytes) -> bytes:
    """Store an action's result as Bazel does: the files, then the entry."""
    for content in contents:
        give(cache, content)
    paths = (f"bazel-out/{index}.o" for index in range(len(contents)))
    entry = b"".join(map(output, paths, contents))
    cache.offer(action, entry)
    return entry


def give(cache: BuildCache, content: bytes, name: str = "") -> None:
    """Upload a blob."""
    stream = iter([content, b""])
    cache.offer_blob(name or sha256(content), len(content), lambda _: next(stream))


@dataclass
class Backend:
    """A cache server in memory, and what is wrong with it."""

    content: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    delay: float = 0.0
    status: int = 0
    change: Callable[[bytes], bytes] = staticmethod(lambda content: content)
    url: str = ""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    backend: Backend

    def do_GET(self) -> None:
        backend = self.backend
        backend.asked.append(self.path)
        time.sleep(backend.delay)
        found = backend.content.get(self.path)
        status = backend.status or (404 if found is None else 200)
        body = backend.change(found) if status == 200 and found is not None else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.backend.status:
            self.backend.content[self.path] = body
        self.send_response(self.backend.status or 201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def backend() -> Iterator[Backend]:
    """Serve a cache server on loopback."""
    backend = Backend()
    handler = type("Handler", (_Handler,), {"backend": backend})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        backend.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield backend
        server.shutdown()


@pytest.fixture
def directory(tmp_path: Path) -> CacheDirectory:
    return CacheDirectory(tmp_path / "cache", 1 << 30)


@pytest.fixture
def trust() -> Trust:
    return Trust(TOOLCHAIN, SECRET)


@pytest.fixture
def cache(directory: CacheDirectory, trust: Trust) -> BuildCache:
    return BuildCache(directory, trust)


@pytest.fixture
def behind(
    tmp_path: Path, trust: Trust, backend: Backend
) -> Iterator[Callable[[str], BuildCache]]:
    """Return what makes the cache of a host by its name, in front of the same server."""
    made: list[BuildCache] = []

    def make(host: str) -> BuildCache:
        directory = CacheDirectory(tmp_path / host, 1 << 30)
        made.append(BuildCache(directory, trust, CacheServer(backend.url)))
        return made[-1]

    yield make
    for cache in made:
        cache.close()
