"""Hosts of git repositories that are out of reach: found out in seconds, and not by git."""

import socket
import time
from collections.abc import Iterator

import pytest
from tests.failing import fails

from tfwright.errors import SilentServerError
from tfwright.progress import SILENCE
from tfwright.tools.git import transport
from tfwright.tools.process.runner import TAIL_LINES


@pytest.fixture(autouse=True)
def without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def deaf() -> Iterator[int]:
    """Return a port that answers no one: its queue of connections is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        waiting = []
        for _ in range(4):
            client = socket.socket()
            client.setblocking(False)  # noqa: FBT003 as the library has it
            client.connect_ex(("127.0.0.1", port))
            waiting.append(client)
        yield port
        for client in waiting:
            client.close()


def test_what_a_server_says_without_end_is_not_kept() -> None:
    lines = (f"remote: line {number}" for number in range(10_000))
    kept = transport._read_progress(lines, SILENCE)
    assert kept[-1] == "remote: line 9999"
    assert len(kept) == TAIL_LINES


@pytest.mark.medium
def test_a_host_that_takes_no_connection_is_given_up_in_time(
    deaf: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "CONNECT_SECONDS", 0.3)
    begun = time.monotonic()
    with fails(SilentServerError, "timed out"):
        transport.check_host(f"https://127.0.0.1:{deaf}/o/r.git")
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    "address",
    [
        "https://127.0.0.1:9/o/r.git",
        "https://nowhere.invalid/o/r.git",
        f"https://{'a' * 70}.example/o/r.git",
    ],
)
def test_a_host_that_is_not_there_is_named(address: str) -> None:
    with fails(SilentServerError, "[mirrors]"):
        transport.check_host(address)


@pytest.mark.parametrize(
    "address",
    [
        "ssh://git@nowhere.invalid/o/r.git",
        "file:///nowhere",
        "https://nowhere.invalid:99999/r.git",
        "https://[::1/r.git",
    ],
)
def test_what_only_git_understands_is_left_to_it(address: str) -> None:
    transport.check_host(address)


@pytest.mark.parametrize("name", ["https_proxy", "ALL_PROXY"])
def test_with_a_proxy_the_host_is_its_business(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "http://proxy.example:3128")
    transport.check_host("https://nowhere.invalid/o/r.git")
