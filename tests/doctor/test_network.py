"""What doctor says about the network."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tfwright.doctor import network
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.tools.http import client
from tfwright.tools.http.client import Availability


class Refusing(BaseHTTPRequestHandler):
    """A proxy that lets nobody through without a password."""

    def do_CONNECT(self) -> None:
        self.send_response(407)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def proxy() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def asked(monkeypatch: pytest.MonkeyPatch, *, github: bool, index: bool) -> list[str]:
    answer = Availability(there=github or None, why="a reason")
    monkeypatch.setattr(client, "ask", lambda *_: answer)
    monkeypatch.setattr(network, "_index_answers", lambda: index)
    recipe = recipes.read("linux-r1.8-cpu")
    return [finding.found for finding in network.findings(recipe, HostFile())]


def test_servers_that_are_silent_are_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, github=True, index=True) == []
    said = asked(monkeypatch, github=False, index=False)
    assert said == ["GitHub and pip's index cannot be reached"]


def test_a_bundled_recipe_asks_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(client, "ask")
    assert list(network.findings(recipes.read("demo"), HostFile())) == []


def test_a_proxy_that_wants_a_password_is_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    with proxy() as address:
        monkeypatch.setenv("https_proxy", address)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        found = client.ask("https://example.invalid/")
    assert found.there is None
    assert "407" in found.why
    assert "password" in found.why
