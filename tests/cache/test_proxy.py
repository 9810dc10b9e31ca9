"""The loopback server: what Bazel sees of the cache."""

import errno
import hashlib
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tfwright.tools.cache import netlisten, proxy, wire
from tfwright.tools.cache.build_cache import BuildCache
from tfwright.tools.cache.proxy import CacheProxy
from tfwright.tools.cache.store import PIECE

ACTION = hashlib.sha256(b"an action").hexdigest()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def output(path: str, content: bytes) -> bytes:
    """Return an ActionResult with one file."""
    digest = wire.field(1, sha256(content).encode()) + wire.integer(2, len(content))
    return wire.field(2, wire.field(1, path.encode()) + wire.field(2, digest))


@pytest.fixture
def served(cache: BuildCache) -> Iterator[CacheProxy]:
    with proxy.serving(cache) as served:
        yield served


def test_bazel_puts_files_and_a_result_and_gets_them_back(served: CacheProxy) -> None:
    entry = output("a.o", b"object")
    with requests.Session() as bazel:
        blob, result = (f"{served.url}/cas/{sha256(b'object')}", f"{served.url}/ac/{ACTION}")
        assert bazel.get(result).status_code == 404
        assert bazel.put(blob, b"object").status_code == 200
        assert bazel.put(result, entry).status_code == 200
        assert bazel.get(result).content == entry
        assert bazel.get(blob).content == b"object"
        assert bazel.head(blob).headers["Content-Length"] == "6"


def test_a_blob_with_a_wrong_digest_is_accepted_and_forgotten(served: CacheProxy) -> None:
    url = f"{served.url}/cas/{sha256(b'object')}"
    assert requests.put(url, b"damaged", timeout=5).status_code == 200
    assert requests.get(url, timeout=5).status_code == 404


@pytest.mark.parametrize("path", ["/", "/ac/..", "/cas/ABC", f"/other/{ACTION}", f"/ac/{ACTION}x"])
def test_nothing_but_digests_is_served(served: CacheProxy, path: str) -> None:
    assert requests.get(served.url + path, timeout=5).status_code == 400


def test_the_empty_file_is_there_without_being_sent(served: CacheProxy) -> None:
    answer = requests.get(f"{served.url}/cas/{sha256(b'')}", timeout=5)
    assert (answer.status_code, answer.content) == (200, b"")


def test_a_connection_that_breaks_off_leaves_nothing(served: CacheProxy, cache: BuildCache) -> None:
    head = f"PUT /cas/{sha256(b'object')} HTTP/1.1\r\nContent-Length: 6\r\n\r\nobj".encode()
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.sendall(head)
    assert requests.get(f"{served.url}/cas/{sha256(b'object')}", timeout=5).status_code == 404
    assert cache.blob(sha256(b"object")) is None


def test_connections_that_are_reset_at_once_keep_nobody_else_out(served: CacheProxy) -> None:
    at_once = struct.pack("ii", 1, 0)
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    answer = requests.get(f"{served.url}/cas/{sha256(b'')}", timeout=5)
    assert answer.status_code == 200


def test_a_program_that_dies_while_it_hands_over_keeps_no_other_out(served: CacheProxy) -> None:
    for _ in range(5):
        with socket.socket(socket.AF_UNIX) as dying:
            dying.connect(str(served.adopt()))
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.socket(socket.AF_UNIX) as program,
    ):
        port = listening.getsockname()[1]
        program.settimeout(5)
        program.connect(str(served.adopt()))
        socket.send_fds(program, [b"1"], [listening.fileno()])
        assert program.recv(1) == b"1"
        url = f"http://127.0.0.1:{port}/cas/{sha256(b'')}"
        assert requests.get(url, timeout=5).status_code == 200


def test_a_large_file_comes_back_whole(served: CacheProxy) -> None:
    content = os.urandom(3 * PIECE + 1)
    url = f"{served.url}/cas/{sha256(content)}"
    assert requests.put(url, content, timeout=5).status_code == 200
    assert requests.get(url, timeout=5).content == content
    assert requests.head(url, timeout=5).headers["Content-Length"] == str(len(content))


def test_an_entry_that_is_too_large_is_forgotten_and_the_next_request_answered(
    served: CacheProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "LARGEST_ENTRY", 10)
    with requests.Session() as bazel:
        result = f"{served.url}/ac/{ACTION}"
        assert bazel.put(result, output("a.o", b"object")).status_code == 200
        assert bazel.get(result).status_code == 404


def test_a_client_that_waits_for_leave_to_send_is_given_it(served: CacheProxy) -> None:
    head = (
        f"PUT /cas/{sha256(b'object')} HTTP/1.1\r\nExpect: 100-continue\r\n"
        "Content-Length: 6\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", served.port), 5) as connection:
        connection.sendall(head.encode())
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"object")
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_lack_of_descriptors_is_waited_out_and_a_closed_socket_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proxy, "BREATHER_SECONDS", 0.0)
    said = [OSError(errno.EMFILE, ""), "a connection", OSError(errno.EBADF, "")]

    class Listener:
        def accept(self) -> tuple[object, str]:
            if isinstance(now := said.pop(0), OSError):
                raise now
            return now, "127.0.0.1"

    assert list(proxy._accepted(Listener())) == ["a connection"]  # type: ignore[arg-type, comparison-overlap]


def test_where_the_system_lists_no_sockets_everyone_on_loopback_is_served(
    served: CacheProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "SOCKET_TABLES", ("/absent/tcp",))
    answer = requests.get(f"{served.url}/cas/{sha256(b'')}", timeout=5)
    assert answer.status_code == 200


def test_a_connection_that_the_system_does_not_list_is_not_served(
    served: CacheProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tcp").write_text("  sl  local_address rem_address\n", "ascii")
    monkeypatch.setattr(proxy, "SOCKET_TABLES", (str(tmp_path / "tcp"),))
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{served.url}/cas/{sha256(b'')}", timeout=5)


def test_only_the_own_user_is_served(served: CacheProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path(proxy.SOCKET_TABLES[0]).exists():
        pytest.skip("this system has no tables of sockets")
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{served.url}/cas/{sha256(b'')}", timeout=5)


@pytest.mark.medium
def test_a_program_without_a_network_reaches_the_cache(served: CacheProxy) -> None:
    enclosure = Path(proxy.__file__).parents[1] / "process/enclosure.py"
    python = (sys.executable, "-I", "-S")
    question = f"import urllib.request as u; u.urlopen('{served.url}/ac/{ACTION}')"
    listening = (*python, netlisten.__file__, str(served.adopt()), str(served.port))
    inside = (*python, str(enclosure), *listening, *python, "-c", question)
    done = subprocess.run(inside, capture_output=True, text=True, check=False)
    if "Operation not permitted" in done.stderr:
        pytest.skip("this system refuses a network namespace")
    assert "HTTP Error 404" in done.stderr


def test_a_program_starts_where_the_cache_cannot_be_reached(tmp_path: Path) -> None:
    command = (sys.executable, "-I", "-S", netlisten.__file__, str(tmp_path / "gone"), "0")
    done = subprocess.run(
        (*command, "/bin/echo", "runs"), capture_output=True, text=True, check=False
    )
    assert done.stdout == "runs\n"
