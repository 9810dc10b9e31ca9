"""Servers that lie, drip or never end: the file's other urls are asked, other files arrive, nothing fills the disk."""

import contextlib
import hashlib
import shutil
import socket
import time
from collections import namedtuple
from pathlib import Path

import pytest
from tests.making import make_file
from tests.tools.http.hosts import DIGITS, Hosts, Serve, repeats, says

from tfwright.progress import SILENCE
from tfwright.tools.http import client, connections, downloads
from tfwright.tools.http.downloads import DownloadOutcome, WantedFile, download, fetch
from tfwright.vault.store import Store

pytestmark = pytest.mark.medium

CONTENT = b"TensorFlow" * 3_000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
WELL = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (
    len(CONTENT),
    CONTENT,
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask a server again at once, and find out soon whether it is slow."""
    monkeypatch.setattr(downloads, "PAUSES", (0.0,))
    monkeypatch.setattr(downloads, "SLOW_SECONDS", 0.3)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "vault")


def bring(store: Store, *urls: str, size: int | None = None) -> DownloadOutcome:
    """Fetch CONTENT from urls."""
    wanted = WantedFile("archive", DIGEST, urls, size)
    (outcome,) = fetch([wanted], store.path, report=SILENCE.progress)
    return outcome


HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
LIES = {
    "a length of 5,000 digits": says(HEAD + b"Content-Length: " + DIGITS + b"\r\n\r\n"),
    "a range of 5,000 digits": says(
        b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-" + DIGITS + b"/" + DIGITS + b"\r\n\r\n"
    ),
    "a length in other digits": says(HEAD + "Content-Length: ٣٠٠\r\n\r\n".encode()),
    "a negative length": says(HEAD + b"Content-Length: -1\r\n\r\n"),
    "a redirect that does not parse": says(b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\n\r\n"),
    "a redirect of bytes": says(b"HTTP/1.1 302 Found\r\nLocation: http://\xff\xfe/\r\n\r\n"),
    "a redirect to a port that is none": says(
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:99999999/\r\n\r\n"
    ),
    "a redirect to a file": says(b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n"),
    "a redirect whose body never ends": repeats(
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\n\r\n", b"x" * 65536
    ),
    "a retry after 5,000 digits": says(
        b"HTTP/1.1 503 Busy\r\nRetry-After: " + DIGITS + b"\r\nContent-Length: 0\r\n\r\n"
    ),
    "a retry after a date that is none": says(
        b"HTTP/1.1 503 Busy\r\nRetry-After: Mon, 99 Jan 99999 00:00:00 GMT\r\nContent-Length: "
        b"0\r\n\r\n"
    ),
    "a status that is no number": says(b"HTTP/1.1 abc OK\r\n\r\n"),
    "no HTTP": says(b"\x00\xff" * 500),
    "a thousand headers": says(HEAD + b"X: y\r\n" * 1000 + b"\r\n"),
    "a header without end": repeats(HEAD + b"X: ", b"y" * 65536),
    "interim answers without end": repeats(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.001),
    "a header that drips": repeats(HEAD + b"X-Drip: ", b"y", 0.05),
    "a body that drips": repeats(HEAD + b"Content-Length: 30000\r\n\r\n", b"y", 0.05),
    "chunks that drip": repeats(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\ny\r\n", 0.05),
    "a chunk size without end": repeats(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0" * 1000),
    "a chunk of negative size": says(HEAD + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nabc\r\n"),
    "trailers without end": repeats(
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\ny\r\n0\r\n", b"X: y\r\n", 0.001
    ),
    "silence": lambda _: time.sleep(5),
    "a retry that is far off, and allowed": says(
        b"HTTP/1.1 503 Busy\r\nRetry-After: 100\r\nContent-Length: 0\r\n\r\n"
    ),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_after_a_lie_the_next_url_is_asked(
    hosts: Hosts, store: Store, lie: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    begun = time.monotonic()
    outcome = bring(store, hosts.start(lie), good := hosts.start(says(WELL)))
    assert outcome.url == good
    assert time.monotonic() - begun < 5
    assert all(failure.why.isprintable() for failure in outcome.failures)


def test_the_other_files_arrive_while_servers_lie(
    hosts: Hosts, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    wanted = [
        WantedFile(name, f"{number:064}", (hosts.start(lie),))
        for number, (name, lie) in enumerate(LIES.items())
    ]
    good = WantedFile("good", DIGEST, (hosts.start(says(WELL)),))
    outcomes = fetch([*wanted, good], store.path, report=SILENCE.progress)
    assert [outcome.wanted.name for outcome in outcomes if outcome.obtained] == ["good"]


Usage = namedtuple("Usage", "total used free")  # noqa: PYI024 as shutil has it


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_without_end_or_size_leaves_half_of_the_disk(
    hosts: Hosts, store: Store, monkeypatch: pytest.MonkeyPatch, *, chunked: bool
) -> None:
    room = 40_000_000
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(room, 0, room))
    piece = b"x" * 65536
    endless = repeats(HEAD + b"\r\n", piece)
    if chunked:
        endless = repeats(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + piece + b"\r\n"
        )
    outcome = bring(store, hosts.start(endless))
    assert "sends more than the 20,000,000 bytes" in outcome.failures[0].why
    assert list(store.root.rglob("partial")) == []


def test_many_bodies_without_end_at_once_leave_room_too(
    hosts: Hosts, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, fullest = 32_000_000, 0

    def usage(_: object) -> Usage:
        nonlocal fullest
        used = 0
        for path in store.root.rglob("partial"):
            # Another thread may remove it in this moment.
            with contextlib.suppress(FileNotFoundError):
                used += path.stat().st_size
        fullest = max(fullest, used)
        return Usage(room, used, room - used)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    endless = repeats(HEAD + b"\r\n", b"x" * 65536, 0.001)
    wanted = [
        WantedFile(str(number), f"{number:064}", (hosts.start(endless),)) for number in range(6)
    ]
    outcomes = fetch(wanted, store.path, report=SILENCE.progress)
    assert not any(outcome.obtained for outcome in outcomes)
    assert fullest < room


def test_an_announcement_beyond_the_disk_is_not_even_read(
    hosts: Hosts, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1000, 0, 1000))
    outcome = bring(store, hosts.start(says(WELL)))
    assert outcome.failures[0].why == (
        "the server announces 30,000 bytes, and without a size in the lock file, "
        "at most 500 are accepted on this disk"
    )


def test_a_size_from_the_lock_is_accepted_whatever_the_disk_says(
    hosts: Hosts, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1000, 0, 1000))
    assert bring(store, hosts.start(says(WELL)), size=len(CONTENT)).obtained


def test_what_an_endless_server_left_is_removed_by_the_next_fetch(
    hosts: Hosts, store: Store
) -> None:
    partial = make_file(store.path(DIGEST).with_name("partial"), b"x" * 2 * len(CONTENT))
    assert bring(store, hosts.start(says(WELL)), size=len(CONTENT)).obtained
    assert not partial.exists()


def test_a_slow_server_is_asked_again_once_all_others_have_failed(
    hosts: Hosts, store: Store
) -> None:
    waits = [0.45, 0.0]
    slow = hosts.start(lambda connection: late(connection, waits.pop(0)))
    missing = hosts.start(says(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"))
    outcome = bring(store, slow, missing)
    assert outcome.url == slow
    assert [failure.url for failure in outcome.failures] == [missing]


def late(connection: socket.socket, seconds: float) -> None:
    """Send the head of an answer at once, its body after a while."""
    connection.sendall(HEAD + b"Content-Length: 30000\r\n\r\n")
    time.sleep(seconds)
    connection.sendall(CONTENT)


def test_the_only_server_may_be_slow_but_not_for_ever(hosts: Hosts, store: Store) -> None:
    begun = time.monotonic()
    outcome = bring(store, hosts.start(LIES["a body that drips"]))
    assert "bytes before its time was over" in outcome.failures[0].why
    assert time.monotonic() - begun < 3


def test_a_server_that_takes_too_long_is_left_while_another_is_there(
    hosts: Hosts, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Fast enough for the measure, and without an end.
    drips = repeats(HEAD + b"Content-Length: 30000000\r\n\r\n", b"y" * 500, 0.01)
    monkeypatch.setattr(downloads, "LEAST_SPEED", 100.0)
    monkeypatch.setattr(downloads, "DEADLINE", 1.0)
    assert bring(store, hosts.start(drips), good := hosts.start(says(WELL))).url == good


def test_a_reason_phrase_cannot_reach_the_terminal(hosts: Hosts, store: Store) -> None:
    escape = says(b"HTTP/1.1 404 \x1b]52;c;eA==\x07\r\nContent-Length: 0\r\n\r\n")
    outcome = bring(store, url := hosts.start(escape))
    assert outcome.failures[0].why.isprintable()
    assert client.ask(url).why.isprintable()


@pytest.mark.parametrize("lie", ["a redirect that does not parse", "a length of 5,000 digits"])
def test_a_head_that_makes_no_sense_says_nothing_about_the_file(hosts: Hosts, lie: str) -> None:
    assert client.ask(hosts.start(LIES[lie])).size is None


def test_a_redirect_is_followed_without_reading_its_body(hosts: Hosts, tmp_path: Path) -> None:
    good = hosts.start(says(WELL))
    lead = repeats(b"HTTP/1.1 302 Found\r\nLocation: %s\r\n\r\n" % good.encode(), b"x" * 65536)
    assert download(hosts.start(lead), tmp_path / "file") == DIGEST


def test_a_file_of_unknown_digest_is_never_put_together_from_two_answers(
    hosts: Hosts, tmp_path: Path
) -> None:
    answers = [HEAD + b"Content-Length: 30000\r\n\r\n" + b"x" * 100, WELL]
    url = hosts.start(lambda connection: connection.sendall(answers.pop(0)))
    assert download(url, tmp_path / "file", pauses=(0.0,)) == DIGEST


@pytest.mark.parametrize("interim", [b"103 Early Hints", b"102 Processing"])
def test_interim_answers_are_skipped(hosts: Hosts, store: Store, interim: bytes) -> None:
    before = b"HTTP/1.1 " + interim + b"\r\nLink: </x>\r\n\r\n"
    assert bring(store, hosts.start(says(before * 3 + WELL))).obtained


@pytest.mark.parametrize("address", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x"])
def test_a_redirect_that_leaves_the_web_is_named(hosts: Hosts, store: Store, address: str) -> None:
    away = f"HTTP/1.1 302 Found\r\nLocation: {address}\r\n\r\n"
    outcome = bring(store, hosts.start(says(away.encode())))
    assert outcome.failures[0].why == (f"it redirects to {address}, which is not http or https")


@pytest.mark.parametrize(
    ("proxy", "why"),
    [
        ("socks5://127.0.0.1:9", "its proxy is a SOCKS proxy; name one for HTTP"),
        ("http://127.0.0.1:9", "its proxy cannot be reached"),
        ("http://u:Canary-1@127.0.0.1:99999", "http://u:…@127.0.0.1:99999"),
        ("http://u:Canary-1#x@127.0.0.1:9", "'u:…' is not a valid host"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(
    store: Store, monkeypatch: pytest.MonkeyPatch, proxy: str, why: str
) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, proxy)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    outcome = bring(store, "http://archives.invalid/a.tar.gz")
    assert why in outcome.failures[0].why
    assert "Canary" not in outcome.failures[0].why
