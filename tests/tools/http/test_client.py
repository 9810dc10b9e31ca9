"""Small documents, and notices, of servers that lie, drip, never end or lead elsewhere."""

import time

import pytest
from tests.failing import fails
from tests.tools.http.hosts import DIGITS, Hosts, Serve, repeats, says

from tfwright.errors import SupplyError
from tfwright.tools.http import connections
from tfwright.tools.http.client import fetch_document, post_json

OK = b"HTTP/1.1 200 OK\r\n"
SECRET = "s3cret"  # noqa: S105 a word to look for


@pytest.mark.parametrize("length", [b"2", DIGITS])
def test_a_document_is_read_whole(length: bytes, hosts: Hosts) -> None:
    url = hosts.start(says(OK + b"Content-Length: " + length + b"\r\n\r\n{}"))
    assert fetch_document(url, 100) == b"{}"


@pytest.mark.parametrize(
    "serve",
    [
        repeats(OK + b"\r\n", b"x" * 1000),
        repeats(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        repeats(OK + b"\r\n", b"x", 0.05),
        repeats(OK, b"X: y\r\n", 0.05),
        says(OK + b"Content-Length: 100\r\n\r\n{}"),
        says(b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\n\r\n"),
        says(b"HTTP/1.1 302 Found\r\nLocation: http://\xff\xfe/\r\n\r\n"),
        says(b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n"),
        says(b"HTTP/1.1 302 Found\r\nLocation: /archive.tar.gz\r\n\r\n"),
        says(b"HTTP/1.1 404 \x1b]0;title\x07\r\n\r\n"),
        says(b"nonsense"),
        says(b""),
    ],
)
@pytest.mark.medium
def test_a_server_that_lies_is_an_error_in_a_moment(
    serve: Serve, hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfwright.tools.http.client.LONGEST_SECONDS", 0.5)
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    begun = time.monotonic()
    with pytest.raises(SupplyError) as caught:
        fetch_document(hosts.start(serve), 100_000)
    assert time.monotonic() - begun < 20
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://", "ftp://a/b", "file:///etc/passwd", "http://a b", "", "\x1b"]
)
def test_an_address_that_is_none_is_named(url: str) -> None:
    with fails(SupplyError, "cannot be read"):
        fetch_document(url, 100)


def test_the_body_of_an_answer_is_not_read(hosts: Hosts) -> None:
    url = hosts.start(repeats(OK + b"\r\n", b"x" * 1000))
    begun = time.monotonic()
    post_json(url, {"a": 1})
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    "serve",
    [
        says(b"HTTP/1.1 302 Found\r\nLocation: /other\r\n\r\n"),
        says(b"HTTP/1.1 500 \x1b[2J\r\n\r\n"),
        repeats(OK, b"X: y\r\n", 0.05),
        says(b"nonsense"),
    ],
)
@pytest.mark.medium
def test_a_notice_that_was_not_taken_is_not_lost(
    serve: Serve, hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    with fails(SupplyError, "notice"):
        post_json(hosts.start(serve), {})


@pytest.mark.parametrize(
    "url",
    [
        "",
        f"x://a/{SECRET}",
        *(
            f"http://{host}/{SECRET}"
            for host in ("[", "[::1", "a..b", "%", "x" * 70, "127.0.0.1:99999")
        ),
    ],
)
def test_an_address_that_is_none_is_not_shown(url: str) -> None:
    with pytest.raises(SupplyError) as caught:
        post_json(url, {}, "line\nbreak")
    assert SECRET not in str(caught.value)
