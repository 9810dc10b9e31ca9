"""What one side of the cache hears of its server."""

import hashlib
from collections.abc import Iterator

import pytest
from tests.cache.backend import Backend

from tfwright.tools.cache import server as cache_server
from tfwright.tools.cache.server import CacheServer, ServerFaultError

KEY = hashlib.sha256(b"an action").hexdigest()


@pytest.fixture
def server(backend: Backend) -> Iterator[CacheServer]:
    made = CacheServer(backend.url)
    yield made
    made.close()


def test_what_is_sent_is_there_and_comes_back(server: CacheServer) -> None:
    assert server.entry(KEY) is None
    assert not server.has(KEY)
    server.send("ac", KEY, b"entry")
    server.send("cas", KEY, b"blob")
    assert server.entry(KEY) == b"entry"
    assert server.has(KEY)
    with server.blob(KEY, 4) as stream:
        assert stream
        assert stream.read(100) == b"blob"


def test_a_blob_that_the_server_lacks_is_none(server: CacheServer) -> None:
    with server.blob(KEY, 4) as stream:
        assert stream is None


def test_a_server_that_was_given_up_is_left_alone(server: CacheServer, backend: Backend) -> None:
    backend.status = 500
    while not server.given_up:
        with pytest.raises(ServerFaultError):
            server.entry(KEY)
    asked = len(backend.asked)
    backend.status = 0
    assert server.entry(KEY) is None
    assert not server.has(KEY)
    server.send("cas", KEY, b"blob")
    with server.blob(KEY, 4) as stream:
        assert stream is None
    assert (len(backend.asked), backend.content) == (asked, {})


def test_an_entry_that_is_too_large_is_a_fault(
    server: CacheServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.send("ac", KEY, b"entry" * 100)
    monkeypatch.setattr(cache_server, "LARGEST_ENTRY", 100)
    with pytest.raises(ServerFaultError, match="an entry is too large"):
        server.entry(KEY)


def test_a_server_that_refuses_to_store_is_named_with_its_status(
    server: CacheServer, backend: Backend
) -> None:
    backend.status = 507
    with pytest.raises(ServerFaultError, match=r"refused to store \(HTTP 507\)"):
        server.send("cas", KEY, b"blob")


def test_a_body_that_comes_too_slowly_is_a_fault(
    server: CacheServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.send("cas", KEY, b"blob")
    monkeypatch.setattr(cache_server, "ANSWER_SECONDS", -1.0)
    with server.blob(KEY, 0) as stream:
        assert stream
        with pytest.raises(ServerFaultError, match="it sends too slowly"):
            stream.read(100)
