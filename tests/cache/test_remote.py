"""What hosts share by a server, which may be slow, wrong, full or gone."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from tests.cache.backend import Backend
from tests.cache.builds import ACTION, EMPTY, OTHER, SEAL, Begin, Build, file_of, overwrite, sha256

from tfwright.tools.cache import remote as remotes
from tfwright.tools.cache.private import PrivateCache
from tfwright.tools.cache.remote import RemoteCache
from tfwright.tools.cache.store import CacheStore, Seal
from tfwright.tools.cache.usage import CacheUse


class Sharing:
    """Hosts with caches of their own, in front of one server."""

    def __init__(self, backend: Backend, begin: Begin) -> None:
        self.backend = backend
        self.use = CacheUse(toolchain="")
        self._begin = begin
        self._url = backend.url

    def remote(self, store: CacheStore, recipe: str = "demo", seal: Seal = SEAL) -> RemoteCache:
        return RemoteCache(self._url, recipe, store, seal, self.use)

    def begin(self, host: str, seal: Seal = SEAL) -> Build:
        """Begin a build of a host, with what the server has."""

        def remote(store: CacheStore, seal: Seal, private: PrivateCache) -> RemoteCache:
            return RemoteCache(self._url, "demo", store, seal, private.use)

        return self._begin(host, seal, remote=remote)

    def write(self, contents: dict[str, bytes], host: str = "writer") -> Build:
        """Build on a host, and send what it made."""
        build = self.begin(host)
        for action, content in contents.items():
            build.add(action, content)
        build.end()
        self.push(build)
        return build

    def push(self, build: Build, actions: Iterable[str] | None = None) -> list[str]:
        remote = self.remote(build.store)
        try:
            return remote.push(build.private.actions if actions is None else actions)
        finally:
            remote.close()

    @property
    def faults(self) -> dict[str, int]:
        return self.use.faults


@pytest.fixture
def sharing(backend: Backend, begin: Begin) -> Sharing:
    return Sharing(backend, begin)


def test_another_host_hits_what_the_server_has(sharing: Sharing) -> None:
    sharing.write({ACTION: b"object", OTHER: b""})
    build = sharing.begin("reader")
    assert build.offered == {ACTION, OTHER, sha256(b"object"), EMPTY}
    assert build.private.fetched == 2
    build.read(ACTION)
    assert build.end().hits == 1


def test_what_a_host_has_is_not_fetched_again_and_not_sent_again(
    sharing: Sharing, backend: Backend
) -> None:
    sharing.write({ACTION: b"object"})
    sharing.begin("reader").end()
    backend.asked.clear()
    build = sharing.begin("reader")
    assert build.private.fetched == 0
    assert not any(sha256(b"object") in path for path in backend.asked)
    backend.content[f"/cas/{sha256(b'object')}"] = b"OBJECT"
    sharing.push(build, [ACTION])
    assert backend.content[f"/cas/{sha256(b'object')}"] == b"OBJECT"


def test_a_damaged_file_of_the_directory_comes_from_the_server(sharing: Sharing) -> None:
    build = sharing.write({ACTION: b"object"})
    overwrite(file_of(build.store, b"object"), b"objecT")
    assert ACTION in sharing.begin("writer").offered


def test_the_index_lists_the_last_build_of_a_recipe(sharing: Sharing) -> None:
    build = sharing.write({ACTION: b"object", OTHER: b"other"})
    assert sharing.push(build, [OTHER]) == [OTHER]
    assert sharing.begin("reader").offered == {OTHER, sha256(b"other"), EMPTY}
    assert sharing.remote(build.store, "another").pull() == []
    other = replace(SEAL, toolchain="b" * 64)
    assert sharing.remote(build.store, seal=other).pull() == []


def test_entries_of_strangers_are_not_believed(sharing: Sharing) -> None:
    stranger = replace(SEAL, secret=b"x" * 32)
    sharing.write({ACTION: b"object"})
    build = sharing.begin("stranger", stranger)
    assert build.offered == {EMPTY}
    assert build.end().faults == {"an entry was not written by a trusted builder": 1}


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:-1],
        lambda content: bytes([content[0] ^ 1]) + content[1:],
        lambda _: b"",
        lambda _: b"[]",
    ],
)
def test_whatever_a_server_changes_becomes_a_miss(
    sharing: Sharing, backend: Backend, change: Callable[[bytes], bytes]
) -> None:
    sharing.write({ACTION: b"object"})
    for name, content in list(backend.content.items()):
        backend.content[name] = change(content)
        assert sharing.begin(f"reader {name[-8:]}").offered == {EMPTY}
        backend.content[name] = content
    assert ACTION in sharing.begin("reader").offered


def test_an_index_cannot_name_a_place_outside_of_the_cache(
    sharing: Sharing, backend: Backend
) -> None:
    sharing.write({ACTION: b"object"})
    (name,) = (name for name, content in backend.content.items() if content[:1] == b"{")
    said = json.loads(backend.content[name])
    spoilt = json.dumps({f"../../{ACTION[6:]}": said[ACTION]}).encode()
    backend.content[name] = spoilt + b" " * (len(backend.content[name]) - len(spoilt))
    assert sharing.begin("reader").offered == {EMPTY}


def test_a_file_that_is_damaged_on_the_server_is_replaced(
    sharing: Sharing, backend: Backend
) -> None:
    sharing.write({ACTION: b"object"})
    name = f"/cas/{sha256(b'object')}"
    backend.content[name] = b"objecT"
    reader = sharing.begin("reader")
    reader.add(ACTION, b"object")
    assert reader.end().faults == {"the server: it sent a file with a wrong checksum": 1}
    remote = sharing.remote(reader.store)
    remote.damaged.add(sha256(b"object"))
    remote.push([ACTION])
    assert backend.content[name] == b"object"
    # One of another size needs no memory of it.
    backend.content[name] = b"obj"
    sharing.push(reader, [ACTION])
    assert backend.content[name] == b"object"


def test_a_file_that_is_damaged_before_it_is_sent_keeps_no_other_from_the_server(
    sharing: Sharing, backend: Backend
) -> None:
    build = sharing.begin("writer")
    build.add(ACTION, b"object")
    build.add(OTHER, b"another object")
    build.end()
    overwrite(file_of(build.store, b"object"), b"other!")
    assert sharing.push(build) == [OTHER]
    assert f"/cas/{sha256(b'object')}" not in backend.content
    assert sharing.faults == {"a file had other content than its name says": 1}
    # What was removed for want of space is no fault.
    build.store.drop_entry(SEAL.toolchain, ACTION)
    assert sharing.push(build) == [OTHER]
    assert sum(sharing.faults.values()) == 1


@pytest.mark.parametrize("status", [500, 302, 403])
def test_a_server_that_only_fails_is_given_up(
    sharing: Sharing, backend: Backend, status: int
) -> None:
    build = sharing.begin("writer")
    for index in range(100):
        build.add(sha256(bytes([index])), bytes([index]))
    build.end()
    backend.status = status
    backend.asked.clear()
    assert sharing.push(build) == []
    assert len(backend.asked) < remotes.MOST_FAULTS + remotes.CONNECTIONS
    assert sharing.begin("reader").offered == {EMPTY}


def test_a_server_that_does_not_listen_is_a_fault(sharing: Sharing, backend: Backend) -> None:
    sharing._url = "http://127.0.0.1:9"
    build = sharing.begin("reader")
    assert sum(build.end().faults.values()) == 1
    assert backend.asked == []


@pytest.mark.medium
def test_a_server_that_does_not_answer_is_given_up(
    sharing: Sharing, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remotes, "ANSWER_SECONDS", 0.05)
    backend.delay = 0.3
    begun = time.monotonic()
    assert sharing.begin("reader").offered == {EMPTY}
    assert time.monotonic() - begun < 1


def test_a_server_that_refuses_to_store_is_named_with_its_status(
    sharing: Sharing, backend: Backend
) -> None:
    build = sharing.begin("writer")
    build.add(ACTION, b"object")
    build.end()
    backend.change = bytes
    backend.full = True
    assert sharing.push(build) == []
    assert sharing.faults == {"the server: it refused to store (HTTP 507)": 1}


@pytest.mark.parametrize(
    ("limit", "value"), [("SLOWEST", 1e12), ("PULL_SECONDS", -1.0), ("LARGEST_INDEX", 10)]
)
def test_a_server_that_is_too_slow_or_claims_too_much_is_a_miss(
    sharing: Sharing, monkeypatch: pytest.MonkeyPatch, limit: str, value: float
) -> None:
    sharing.write({ACTION: b"object"})
    if limit == "SLOWEST":
        monkeypatch.setattr(remotes, "ANSWER_SECONDS", 1e-9)
        monkeypatch.setattr(remotes, "CONNECT_SECONDS", 1.0)
    monkeypatch.setattr(remotes, limit, value)
    assert sharing.begin("reader").offered == {EMPTY}


def test_user_and_password_go_to_the_server(sharing: Sharing, backend: Backend) -> None:
    sharing._url = backend.url.replace("http://", "http://user:word@")
    sharing.begin("reader")
    assert backend.authorised == ["Basic dXNlcjp3b3Jk"]
