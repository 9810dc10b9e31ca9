"""The loopback server of an index, asked by a real HTTP client."""

import re
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
from tfwright.tools.http.server import ByteRange, parse_range

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
    # The lines of a header are one list.
    lines = f"Accept: text/html;q=0.1\r\nAccept: {JSON}"
    asked = f"HEAD /simple/demo/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{lines}\r\n\r\n"
    with socket.create_connection((server.LOOPBACK, urlsplit(url).port or 0)) as connection:
        connection.sendall(asked.encode())
        assert JSON.encode() in connection.makefile("rb").read()
    # And a browser gets HTML.
    answer = ask(f"{url}/simple/demo/", headers={"Accept": "text/html"})
    assert answer.text == "simple/demo/index.html"
    assert answer.headers["Content-Type"].startswith("text/html")


def test_pages_are_asked_for_again_and_wheels_are_kept(url: str) -> None:
    page = ask(f"{url}/simple/demo/")
    wheel = ask(f"{url}/packages/demo-1.0%2Bcpu-py3-none-any.whl")
    assert page.headers["Cache-Control"] == "no-cache"
    assert "immutable" in wheel.headers["Cache-Control"]


def test_a_part_of_a_wheel_is_sent_on_request(url: str) -> None:
    wheel = f"{url}/packages/demo-1.0%2Bcpu-py3-none-any.whl"
    answer = ask(wheel, headers={"Range": "bytes=10-19"})
    assert (answer.status_code, answer.content) == (206, bytes(range(10, 20)))
    assert answer.headers["Content-Range"] == "bytes 10-19/100"
    assert ask(wheel, headers={"Range": "bytes=100-"}).status_code == 416


PAST, FUTURE = "Mon, 01 Jan 2001 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"If-None-Match": "TAG"}, 304),
        ({"If-None-Match": "W/TAG"}, 304),
        ({"If-None-Match": '"a", W/TAG , "b"'}, 304),
        ({"If-None-Match": "*"}, 304),
        ({"If-None-Match": '"a"', "If-Modified-Since": FUTURE}, 200),
        ({"If-Modified-Since": "DATE"}, 304),
        ({"If-Modified-Since": PAST}, 200),
        ({"If-Modified-Since": "yesterday"}, 200),
        ({"If-Match": "TAG"}, 200),
        ({"If-Match": '"a", TAG'}, 200),
        ({"If-Match": "*", "If-None-Match": "TAG"}, 304),
        ({"If-Match": "W/TAG"}, 412),
        ({"If-Match": '"a"', "If-Unmodified-Since": FUTURE}, 412),
        ({"If-Match": "TAG", "If-Unmodified-Since": PAST}, 200),
        ({"If-Unmodified-Since": "DATE"}, 200),
        ({"If-Unmodified-Since": "yesterday"}, 200),
        ({"If-Unmodified-Since": PAST, "Range": "bytes=0-1"}, 412),
        ({"Range": "bytes=0-1", "If-Range": "DATE"}, 206),
        ({"Range": "bytes=0-1", "If-Range": "TAG"}, 206),
        ({"Range": "bytes=0-1", "If-Range": '"of another file"'}, 200),
        ({"Range": "bytes=0-1", "If-Range": "W/TAG"}, 200),
    ],
)
def test_conditions_are_judged_as_rfc_9110_says(
    url: str, asked: dict[str, str], status: int
) -> None:
    first = ask(f"{url}/simple/demo/").headers
    known = {"TAG": first["ETag"], "DATE": first["Last-Modified"]}
    headers = {
        name: re.sub("TAG|DATE", lambda found: known[found[0]], value)
        for name, value in asked.items()
    }
    answer = ask(f"{url}/simple/demo/", headers=headers)
    assert answer.status_code == status
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert ("Content-Length" in answer.headers) == (status != 304)
    whole = "simple/demo/index.html"
    assert answer.text == {200: whole, 206: whole[:2], 304: "", 412: ""}[status]


@pytest.mark.parametrize(
    ("accepted", "json"),
    [
        ("", False),
        ("*/*", False),
        ("text/html,application/xhtml+xml,*/*;q=0.8", False),
        (
            "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01",
            True,
        ),
        ("application/vnd.pypi.simple.v1+json, text/html", True),
        ("application/vnd.pypi.simple.v1+json;q=0, text/html", False),
        ("application/vnd.pypi.simple.v1+json;q=0", False),
        ("text/html;q=0.2, application/vnd.pypi.simple.v1+JSON;q=0.3", True),
        ("application/vnd.pypi.simple.v1+json;q=0.3, text/html", False),
        ("application/vnd.pypi.simple.v1+json;q=0.5, */*;q=0.8", False),
        ("application/vnd.pypi.simple.latest+json", True),
        ("application/vnd.pypi.simple.v1+json;q=much", False),
    ],
)
def test_the_format_is_chosen_by_weight(accepted: str, *, json: bool) -> None:
    assert server.prefers_json(accepted) is json


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_a_method_that_changes_something_is_not_allowed(url: str, method: str) -> None:
    answer = requests.request(method, f"{url}/simple/demo/", data=b"x", timeout=10)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert requests.request("BREW", url, timeout=10).status_code == 501


def test_the_body_of_a_request_is_no_second_request(url: str) -> None:
    parts = urlsplit(url)
    inner = "GET /absent HTTP/1.1\r\nHost: a\r\n\r\n"
    head = f"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: {len(inner)}\r\n\r\n"
    with socket.create_connection((parts.hostname, parts.port), timeout=5) as client:
        client.sendall((head + inner).encode())
        said = client.makefile("rb").read()
    assert said.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in said


def test_a_request_names_one_host(url: str) -> None:
    for hosts in ("", "Host: a\r\nHost: b\r\n"):
        assert _told(url, f"GET / HTTP/1.1\r\n{hosts}\r\n").startswith("HTTP/1.1 400")


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
    ("asked", "expected"),
    [
        ("", ByteRange(0, 100)),
        ("bytes=0-0", ByteRange(0, 1)),
        ("bytes=90-", ByteRange(90, 10)),
        ("bytes=90-500", ByteRange(90, 10)),
        ("bytes=-7", ByteRange(93, 7)),
        ("bytes=-700", ByteRange(0, 100)),
        ("bytes=5-3", ByteRange(0, 100)),
        ("Bytes=5-5", ByteRange(5, 1)),
        ("bytes=-0", None),
        ("bytes=0-1,3-4", ByteRange(0, 100)),
        ("lines=0-1", ByteRange(0, 100)),
        ("bytes=" + "9" * 30 + "-", ByteRange(0, 100)),
    ],
)
def test_ranges_are_read_as_rfc_9110_says(asked: str, expected: ByteRange | None) -> None:
    assert parse_range(asked, 100) == expected


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("/" + "a" * 3000, "404 Not Found"),
        ("http://[/x", "400 Bad Request"),
        ("/%ff%00", "404 Not Found"),
        ("//[", "404 Not Found"),
    ],
)
def test_a_request_that_makes_no_sense_gets_an_answer(url: str, asked: str, status: str) -> None:
    answer = _told(url, f"GET {asked} HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer.startswith(f"HTTP/1.1 {status}")


@pytest.mark.parametrize("asked", ["GET / HTTP/2.0", "GET / HTTP/2", "PUT /", "GET / HTTP/1.1 x"])
def test_a_request_line_that_cannot_be_read_gets_a_status_line(url: str, asked: str) -> None:
    assert re.match(r"HTTP/1\.1 (400|505) ", _told(url, f"{asked}\r\nHost: a\r\n\r\n"))


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
    monkeypatch.setattr(server, "parse_range", lambda *_: 1 / 0)
    with pytest.raises(requests.ConnectionError):
        ask(f"{url}/index.html")
    assert "ZeroDivisionError" in err()
