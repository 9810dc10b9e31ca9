"""The loopback server of an index, asked by a real HTTP client."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from tests.making import Read, make_file

from tfwright.tools.http import server

ask = partial(requests.get, timeout=10)
JSON = "application/vnd.pypi.simple.v1+json"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name in ("simple/demo/index.html", "simple/demo/index.json", "index.html"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    make_file(tmp_path / "packages/demo-1.0+cpu-py3-none-any.whl", bytes(range(100)))
    (tmp_path / "packages/.catalog.sqlite").write_text("secret")
    (tmp_path.parent / "outside.txt").write_text("outside")
    (tmp_path / "escape").symlink_to(tmp_path.parent)
    return tmp_path


@pytest.fixture
def url(site: Path) -> Iterator[str]:
    with server.listening(site) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://{server.LOOPBACK}:{listener.server_address[1]}"
        listener.shutdown()
        thread.join()


def test_a_client_that_asks_for_json_gets_json(url: str) -> None:
    answer = ask(f"{url}/simple/demo/", headers={"Accept": f"{JSON}, text/html;q=0.1"})
    assert answer.text == "simple/demo/index.json"
    assert answer.headers["Content-Type"] == JSON
    assert answer.headers["Vary"] == "Accept"
    # And a browser gets HTML.
    answer = ask(f"{url}/simple/demo/", headers={"Accept": "text/html"})
    assert answer.text == "simple/demo/index.html"
    assert answer.headers["Content-Type"].startswith("text/html")


def test_pages_are_asked_for_again_and_wheels_are_kept(url: str) -> None:
    page = ask(f"{url}/simple/demo/")
    wheel = ask(f"{url}/packages/demo-1.0%2Bcpu-py3-none-any.whl")
    assert page.headers["Cache-Control"] == "no-cache"
    assert "immutable" in wheel.headers["Cache-Control"]


@pytest.mark.medium
def test_two_hundred_connections_at_once_are_all_answered(url: str) -> None:
    parts = urlsplit(url)
    request = b"GET /simple/demo/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    with ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection((parts.hostname, parts.port), timeout=20))
            for _ in range(200)
        ]
        for client in clients:
            client.sendall(request)
        answers = [client.makefile("rb").readline() for client in clients]
    assert set(answers) == {b"HTTP/1.1 200 OK\r\n"}


def test_a_packed_file_has_the_type_of_a_packed_file(url: str, site: Path) -> None:
    (site / "compile.profile.json.gz").write_bytes(b"x")
    answer = requests.head(f"{url}/compile.profile.json.gz", timeout=10)
    assert answer.headers["Content-Type"] == "application/gzip"
    assert "Content-Encoding" not in answer.headers


def test_a_head_request_gets_no_content(url: str) -> None:
    answer = requests.head(f"{url}/packages/demo-1.0%2Bcpu-py3-none-any.whl", timeout=10)
    assert answer.headers["Content-Length"] == "100"
    answer = requests.head(f"{url}/absent", timeout=10)
    assert (answer.status_code, answer.content) == (404, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/../outside.txt",
        "/%2e%2e/outside.txt",
        "/escape/outside.txt",
        "/packages/.catalog.sqlite",
        "/packages/%2ecatalog.sqlite",
        "/packages/..%2f..%2foutside.txt",
        "/packages/%00",
        "/absent",
    ],
)
def test_nothing_outside_the_folder_is_served(url: str, path: str) -> None:
    request = requests.Request("GET", url).prepare()
    request.url = url + path
    with requests.Session() as session:
        answer = session.send(request, allow_redirects=False)
    assert answer.status_code == 404


def test_a_folder_without_a_slash_leads_to_itself_on_this_server(url: str) -> None:
    answer = ask(f"{url}//simple", allow_redirects=False)
    assert answer.headers["Location"] == "/simple/"


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("/" + "a" * 3000, "404 Not Found"),
        ("http://[/x", "404 Not Found"),
        ("/%ff%00", "404 Not Found"),
        ("//[", "404 Not Found"),
    ],
)
def test_a_request_that_makes_no_sense_gets_an_answer(url: str, asked: str, status: str) -> None:
    answer = _told(url, f"GET {asked} HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer.startswith(f"HTTP/1.1 {status}")


def test_a_client_that_goes_away_is_not_spoken_of(
    url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for request in ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET /", ""):
        _told(url, request, linger=0)
    # The last answer comes after those that nobody waited for.
    requests.get(url, timeout=5)
    assert capfd.readouterr().err == ""


def _told(url: str, request: str, linger: int | None = None) -> str:
    """Return the first line of an answer; with `linger` of 0, reset the connection instead."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=5) as client:
        client.sendall(request.encode())
        if linger is not None:
            at_once = struct.pack("ii", 1, linger)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            return ""
        return client.makefile("r", encoding="utf-8").readline()


def test_an_error_of_ours_is_shown(url: str, monkeypatch: pytest.MonkeyPatch, err: Read) -> None:
    monkeypatch.setattr(server, "content_policy", lambda *_: 1 / 0)
    with pytest.raises(requests.ConnectionError):
        ask(f"{url}/index.html")
    assert "ZeroDivisionError" in err()
