"""What doctor says about the network."""

import socket
from contextlib import closing
from pathlib import Path

import pytest
from tests.serving import QuietHandler, serving

from tfwright.doctor import network
from tfwright.doctor.inventory import Finding
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile, OtherBazel
from tfwright.tools.http import client
from tfwright.tools.http.client import Availability


class Refusing(QuietHandler):
    """A proxy that lets nobody through without a password."""

    def do_CONNECT(self) -> None:
        self.send_response(407)
        self.send_header("Content-Length", "0")
        self.end_headers()


def findings(
    monkeypatch: pytest.MonkeyPatch, github: str = "", index: str = "", bazel: str = ""
) -> list[Finding]:
    answer = Availability(there=not github or None, why=github)
    monkeypatch.setattr(client, "ask", lambda *_: answer)
    monkeypatch.setattr(network, "_index_fault", lambda: index)
    recipe = recipes.read("linux-r1.8-cpu")
    wanted = recipe.bazel.version
    # As a build reads it where the host file puts a Bazel in place of the pinned one.
    recipe = recipe.changed(bazel=recipe.bazel.changed(version=bazel or wanted, sha256={}))
    other = OtherBazel(path=Path("/opt/bazel"), version=bazel or wanted)
    host_file = HostFile(bazels={wanted: other} if bazel else {})
    return list(network.findings(recipe, host_file, (Path("/none"),)))


def asked(monkeypatch: pytest.MonkeyPatch, github: str = "", index: str = "") -> list[str]:
    return [finding.found for finding in findings(monkeypatch, github, index)]


@pytest.mark.parametrize(("bazel", "wanted"), [("", True), ("0.12.0", False)])
def test_a_bazel_that_the_host_file_names_needs_no_server(
    monkeypatch: pytest.MonkeyPatch, bazel: str, *, wanted: bool
) -> None:
    (found,) = findings(monkeypatch, "no such host", "no such index", bazel=bazel)
    assert ("Bazel" in found.wanted) is wanted
    assert found.why == "no such host; no such index"


def test_servers_that_are_silent_are_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch) == []
    said = asked(monkeypatch, "no such host", "no such index")
    assert said == ["GitHub and pip's index cannot be reached"]


def test_a_server_that_is_slow_is_not_called_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    said = asked(monkeypatch, "no such host", f"pip {network.SLOW}")
    assert said == ["GitHub cannot be reached", "pip's index did not answer within 3 s"]


def test_an_address_that_takes_connections_and_says_nothing_is_slow() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        found = client.ask(f"http://127.0.0.1:{server.getsockname()[1]}/", (0.05, 0.05))
    assert found.there is None
    assert network.SLOW in found.why


def test_a_bazel_of_the_vault_needs_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "find_stored", lambda *_: object())
    (found,) = findings(monkeypatch, "no such host")
    assert "Bazel" not in found.wanted


def test_a_bundled_recipe_asks_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(client, "ask")
    assert list(network.findings(recipes.read("demo"), HostFile(), (Path("/none"),))) == []


def test_a_proxy_that_wants_a_password_is_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Refusing) as address:
        monkeypatch.setenv("https_proxy", address)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        found = client.ask("https://example.invalid/")
    assert found.there is None
    assert "407" in found.why
    assert "password" in found.why
