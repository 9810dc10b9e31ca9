"""Servers that take notices: their answers have no end, or lead elsewhere."""

import time
from collections.abc import Iterator

import pytest
from tests.failing import fails
from tests.tools.http.test_hostile import Hosts, Serve, repeats, says

from tfwright.errors import SupplyError
from tfwright.tools.http import connections
from tfwright.tools.http.client import post_json

SECRET = "s3cret"  # noqa: S105 a word to look for


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    made = Hosts()
    yield made
    made.stop()


def test_the_body_of_an_answer_is_not_read(hosts: Hosts) -> None:
    url = hosts.start(repeats(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1000))
    begun = time.monotonic()
    post_json(url, {"a": 1})
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    "serve",
    [
        says(b"HTTP/1.1 302 Found\r\nLocation: /other\r\n\r\n"),
        says(b"HTTP/1.1 500 \x1b[2J\r\n\r\n"),
        repeats(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.05),
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
