"""What the cache answers: verified hits, and misses for everything else."""

import contextlib
import hashlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cache.backend import Backend

from tfwright.tools.cache import build_cache, store, wire
from tfwright.tools.cache.build_cache import BuildCache, Trust
from tfwright.tools.cache.server import CacheServer
from tfwright.tools.cache.store import CacheDirectory

TOOLCHAIN = "a" * 64
ACTION = hashlib.sha256(b"an action").hexdigest()
OTHER = hashlib.sha256(b"another action").hexdigest()


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


@pytest.fixture
def behind(tmp_path: Path, trust: Trust, backend: Backend) -> Iterator[Callable[[str], BuildCache]]:
    """Return what makes the cache of a host by its name, in front of the same server."""
    made: list[BuildCache] = []

    def make(host: str) -> BuildCache:
        directory = CacheDirectory(tmp_path / host, 1 << 30)
        made.append(BuildCache(directory, trust, CacheServer(backend.url)))
        return made[-1]

    yield make
    for cache in made:
        cache.close()


def file_of(directory: CacheDirectory, content: bytes) -> Path:
    name = sha256(content)
    return directory.root / "cas" / name[:2] / name


def entry_of(directory: CacheDirectory, action: str) -> Path:
    return directory.root / "ac" / TOOLCHAIN / action[:2] / action


def overwrite(path: Path, content: bytes) -> None:
    """Change a file of the cache, which is read-only."""
    path.chmod(0o600)
    path.write_bytes(content)


def reopened(cache: BuildCache, directory: CacheDirectory, trust: Trust) -> BuildCache:
    """Return the cache as the next build opens it."""
    cache.close()
    return BuildCache(CacheDirectory(directory.root, 1 << 30), trust)


def test_a_stored_result_comes_back_with_its_files(cache: BuildCache) -> None:
    entry = put(cache, ACTION, b"object", b"log")
    assert cache.lookup(ACTION) == entry
    stream = cache.blob(sha256(b"object"))
    assert stream is not None
    with stream:
        assert stream.read() == b"object"
    assert cache.tally.use(TOOLCHAIN).hits == 1


def test_an_unknown_action_is_a_miss(cache: BuildCache) -> None:
    assert cache.lookup(ACTION) is None
    assert cache.tally.use(TOOLCHAIN).faults == {}


@pytest.mark.parametrize("damage", [b"objecT", b"obj", b"object, and more", b""])
def test_a_changed_file_makes_the_action_a_miss(
    cache: BuildCache, directory: CacheDirectory, trust: Trust, damage: bytes
) -> None:
    put(cache, ACTION, b"object")
    overwrite(file_of(directory, b"object"), damage)
    assert reopened(cache, directory, trust).lookup(ACTION) is None
    assert not file_of(directory, b"object").exists()


def test_a_file_changed_between_the_answer_and_the_download_is_not_sent(
    cache: BuildCache, directory: CacheDirectory
) -> None:
    put(cache, ACTION, b"object")
    assert cache.lookup(ACTION) is not None
    overwrite(file_of(directory, b"object"), b"another")
    assert cache.blob(sha256(b"object")) is None


def test_a_removed_file_makes_the_action_a_miss(
    cache: BuildCache, directory: CacheDirectory
) -> None:
    put(cache, ACTION, b"object")
    file_of(directory, b"object").unlink()
    assert cache.lookup(ACTION) is None
    assert "a file of a result is gone" in cache.tally.use(TOOLCHAIN).faults


def test_entries_that_changed_places_are_misses(
    cache: BuildCache, directory: CacheDirectory
) -> None:
    put(cache, ACTION, b"object")
    put(cache, OTHER, b"another object")
    mine, other = (entry_of(directory, action) for action in (ACTION, OTHER))
    content = mine.read_bytes()
    overwrite(mine, other.read_bytes())
    overwrite(other, content)
    assert cache.lookup(ACTION) is None
    assert cache.lookup(OTHER) is None


def test_an_entry_of_another_toolchain_is_a_miss(
    cache: BuildCache, directory: CacheDirectory, trust: Trust
) -> None:
    put(cache, ACTION, b"object")
    another = BuildCache(directory, replace(trust, toolchain="b" * 64))
    assert another.lookup(ACTION) is None


def test_an_entry_copied_to_another_toolchain_is_a_miss(
    cache: BuildCache, directory: CacheDirectory, trust: Trust
) -> None:
    put(cache, ACTION, b"object")
    directory.keep_entry("b" * 64, ACTION, entry_of(directory, ACTION).read_bytes())
    another = BuildCache(directory, replace(trust, toolchain="b" * 64))
    assert another.lookup(ACTION) is None
    faults = another.tally.use(TOOLCHAIN).faults
    assert faults == {"an entry was not written by a trusted builder": 1}


@pytest.mark.parametrize("keep", [0, 1, 40, -1])
def test_a_truncated_entry_is_a_miss(
    cache: BuildCache, directory: CacheDirectory, keep: int
) -> None:
    put(cache, ACTION, b"object")
    path = entry_of(directory, ACTION)
    overwrite(path, path.read_bytes()[:keep])
    assert cache.lookup(ACTION) is None


def test_a_result_without_its_files_is_not_stored(cache: BuildCache) -> None:
    cache.offer(ACTION, output("a.o", b"never sent"))
    assert cache.lookup(ACTION) is None


def test_a_file_with_another_digest_is_not_stored(cache: BuildCache) -> None:
    give(cache, b"changed while it was read", name=sha256(b"original"))
    cache.offer(ACTION, output("a.o", b"original"))
    assert cache.lookup(ACTION) is None


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside", "a/../../b"])
def test_a_result_that_writes_outside_the_build_is_refused(cache: BuildCache, path: str) -> None:
    give(cache, b"evil")
    cache.offer(ACTION, output(path, b"evil"))
    assert cache.lookup(ACTION) is None


def test_a_failed_action_is_not_stored(cache: BuildCache) -> None:
    cache.offer(ACTION, b"\x20\x01")
    assert cache.lookup(ACTION) is None


def test_an_empty_file_need_not_be_sent(cache: BuildCache) -> None:
    cache.offer(ACTION, output("empty", b""))
    assert cache.lookup(ACTION) is not None


def test_the_least_recently_used_files_go_first(tmp_path: Path, trust: Trust) -> None:
    directory = CacheDirectory(tmp_path / "cache", 5000)
    cache = BuildCache(directory, trust)
    long_ago = time.time() - 2 * store.YOUNG_SECONDS
    contents = [bytes([index]) * 1000 for index in range(4)]
    for age, content in enumerate(contents):
        put(cache, sha256(content), content)
        for path in (file_of(directory, content), entry_of(directory, sha256(content))):
            os.utime(path, (long_ago + age, long_ago + age))
    put(cache, ACTION, b"x" * 1000)
    assert cache.lookup(sha256(contents[0])) is None
    assert cache.lookup(sha256(contents[3])) is not None
    assert cache.lookup(ACTION) is not None


def test_what_a_build_just_used_is_not_removed(tmp_path: Path, trust: Trust) -> None:
    cache = BuildCache(CacheDirectory(tmp_path / "cache", 2500), trust)
    contents = [bytes([index]) * 1000 for index in range(4)]
    for content in contents:
        put(cache, sha256(content), content)
    kept = [content for content in contents if cache.lookup(sha256(content)) is not None]
    assert kept == contents[:2]
    faults = cache.tally.use(TOOLCHAIN).faults
    assert "the cache is full and everything in it is in use" in faults


def test_another_host_hits_what_the_server_has(behind: Callable[[str], BuildCache]) -> None:
    writer = behind("writer")
    entry = put(writer, ACTION, b"object")
    writer.close()
    reader = behind("reader")
    assert reader.lookup(ACTION) == entry
    stream = reader.blob(sha256(b"object"))
    assert stream is not None
    stream.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:-1],
        lambda content: content + b"more",
        lambda content: bytes([content[0] ^ 1]) + content[1:],
        lambda _: b"",
    ],
)
def test_whatever_a_server_changes_becomes_a_miss(
    behind: Callable[[str], BuildCache], backend: Backend, change: Callable[[bytes], bytes]
) -> None:
    writer = behind("writer")
    put(writer, ACTION, b"object")
    writer.close()
    backend.change = change
    assert behind("reader").lookup(ACTION) is None


def test_a_file_that_is_damaged_on_the_server_is_replaced(
    behind: Callable[[str], BuildCache], backend: Backend
) -> None:
    writer = behind("writer")
    put(writer, ACTION, b"object")
    writer.close()
    name = f"/cas/{sha256(b'object')}"
    backend.content[name] = b"objecT"
    finder = behind("finder")
    assert finder.lookup(ACTION) is None
    put(finder, ACTION, b"object")
    finder.close()
    assert backend.content[name] == b"object"


@pytest.mark.medium
def test_a_file_that_is_damaged_before_it_is_sent_keeps_no_other_from_the_server(
    behind: Callable[[str], BuildCache], backend: Backend, tmp_path: Path
) -> None:
    # The server answers late, so that the file changes between the question and the upload.
    backend.delay = 0.5
    writer = behind("writer")
    put(writer, ACTION, b"object")
    file_of(CacheDirectory(tmp_path / "writer", 1 << 30), b"object").write_bytes(b"other!")
    backend.delay = 0.0
    put(writer, OTHER, b"another object")
    writer.close()
    assert b"another object" in backend.content.values()
    assert f"/cas/{sha256(b'object')}" not in backend.content
    faults = writer.tally.use(TOOLCHAIN).faults
    assert faults == {"a file had other content than its name says": 1}


def test_entries_of_a_server_without_our_seal_are_misses(
    behind: Callable[[str], BuildCache], backend: Backend, trust: Trust
) -> None:
    backend.content[f"/ac/{trust.key(ACTION)}"] = output("a.o", b"object")
    backend.content[f"/cas/{sha256(b'object')}"] = b"object"
    assert behind("reader").lookup(ACTION) is None


def test_an_entry_that_a_trusted_manifest_lists_is_a_hit(
    tmp_path: Path, backend: Backend, behind: Callable[[str], BuildCache], trust: Trust
) -> None:
    writer = behind("writer")
    put(writer, ACTION, b"object")
    put(writer, OTHER, b"another")
    writer.close()
    listed = {ACTION: writer.written[ACTION]}
    stranger = replace(trust, secret=b"a stranger's secret, 32 bytes ..", listed=listed)
    directory = CacheDirectory(tmp_path / "stranger", 1 << 30)
    reader = BuildCache(directory, stranger, CacheServer(backend.url))
    assert reader.lookup(ACTION) is not None
    assert reader.lookup(OTHER) is None


@pytest.mark.parametrize("status", [500, 302, 403])
def test_a_server_that_only_fails_is_given_up(
    behind: Callable[[str], BuildCache], backend: Backend, status: int
) -> None:
    backend.status = status
    cache = behind("reader")
    for index in range(20):
        assert cache.lookup(sha256(bytes([index]))) is None
    assert len(backend.asked) <= 3


@pytest.mark.medium
def test_a_server_that_does_not_answer_is_given_up(
    behind: Callable[[str], BuildCache], backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfwright.tools.cache.server.ANSWER_SECONDS", 0.05)
    backend.delay = 0.3
    cache = behind("reader")
    begun = time.monotonic()
    for index in range(20):
        assert cache.lookup(sha256(bytes([index]))) is None
    assert time.monotonic() - begun < 1
    assert len(backend.asked) <= 3


def test_a_directory_whose_list_is_gone_is_not_stored_as_a_result(
    cache: BuildCache, directory: CacheDirectory
) -> None:
    tree = wire.field(1, wire.field(1, wire.field(1, b"a") + wire.field(2, digest(b"a"))))
    listed = wire.field(1, b"bazel-out/folder") + wire.field(3, digest(tree))
    give(cache, b"a")
    cache.offer(ACTION, wire.field(3, listed))
    assert cache.lookup(ACTION) is None
    give(cache, tree)
    cache.offer(ACTION, wire.field(3, listed))
    assert cache.lookup(ACTION) is not None
    file_of(directory, tree).unlink()
    assert cache.lookup(ACTION) is None


def test_a_server_that_does_not_store_in_time_is_named(
    behind: Callable[[str], BuildCache], backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_cache, "DRAIN_SECONDS", 0.01)
    backend.delay = 0.3
    cache = behind("builder")
    put(cache, ACTION, b"object")
    cache.close()
    assert any(
        "it took too long to store everything" in fault
        for fault in cache.tally.use(TOOLCHAIN).faults
    )


def test_a_build_that_asks_for_too_long_does_not_wait_for_more(
    behind: Callable[[str], BuildCache], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = behind("builder")
    put(first, ACTION, b"object")
    first.close()
    monkeypatch.setattr(build_cache, "LOOKUP_SECONDS", -1.0)
    assert behind("reader").lookup(ACTION) is None


def test_a_server_that_is_not_there_costs_a_miss(tmp_path: Path, trust: Trust) -> None:
    directory = CacheDirectory(tmp_path / "cache", 1 << 30)
    cache = BuildCache(directory, trust, CacheServer("http://127.0.0.1:9"))
    assert cache.lookup(ACTION) is None
    put(cache, ACTION, b"object")
    assert cache.lookup(ACTION) is not None
    cache.close()


def test_what_a_server_says_without_an_end_of_what_it_stored_is_not_read() -> None:
    def pour() -> None:
        client, _ = listening.accept()
        with client, contextlib.suppress(OSError):
            client.recv(65536)
            client.sendall(b"HTTP/1.1 201 Created\r\n\r\n")
            while True:
                client.sendall(b" " * 65536)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=pour, daemon=True).start()
        server = CacheServer(f"http://127.0.0.1:{listening.getsockname()[1]}")
        server.send("cas", "a" * 64, b"content")
        assert not server.given_up
        server.close()
