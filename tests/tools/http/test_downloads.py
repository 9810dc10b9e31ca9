"""Many downloads at once: what each fault of a server leads to, and that nothing wrong gets into the store."""

import contextlib
import email.utils
import hashlib
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.failing import fails
from tests.limits import largest_file
from tests.serving import QuietHandler, serving

from tfwright.errors import HostError, SilentServerError, SupplyError
from tfwright.progress import SILENCE, Progress
from tfwright.tools.http import downloads
from tfwright.tools.http.downloads import DownloadOutcome, Failure, WantedFile, download, fetch
from tfwright.vault.store import Store

CONTENT = b"TensorFlow" * 30_000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
Act = Callable[["Handler"], None]


class Handler(QuietHandler):
    """Serves CONTENT, with ranges, unless a path has acts: then the next act answers."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    site: "Site"

    def do_GET(self) -> None:
        self.site.record(self)
        acts = self.site.acts.get(self.path, [])
        (acts.pop(0) if acts else serve)(self)

    def send(self, status: int, body: bytes = b"", **headers: object) -> None:
        self.send_response(status)
        for name, value in {"Content_Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)

    def start(self) -> int:
        return (
            int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
            if "Range" in self.headers
            else 0
        )

    def hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)


def serve(handler: Handler, content: bytes = CONTENT) -> None:
    start = handler.start()
    if start:
        handler.send(
            206, content[start:], Content_Range=f"bytes {start}-{len(content) - 1}/{len(content)}"
        )
    else:
        handler.send(200, content)


def cut(handler: Handler) -> None:
    """Send a third of what is missing."""
    start = handler.start()
    end = start + (len(CONTENT) - start) // 3
    span = {"Content_Range": f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"} if start else {}
    handler.send(
        206 if start else 200,
        CONTENT[start:end],
        **{"Content_Length": len(CONTENT) - start, **span},
    )
    handler.hang_up()


def a_byte(handler: Handler) -> None:
    """Send one byte of what is missing."""
    start, end = handler.start(), len(CONTENT)
    handler.send(
        206,
        CONTENT[start : start + 1],
        Content_Length=end - start,
        Content_Range=f"bytes {start}-{end - 1}/{end}",
    )
    handler.hang_up()


def without_ranges(handler: Handler) -> None:
    handler.send(200, CONTENT)


def other_range(handler: Handler) -> None:
    handler.send(206, CONTENT[7:], Content_Range=f"bytes 7-{len(CONTENT) - 1}/{len(CONTENT)}")


def announces_too_much(handler: Handler) -> None:
    handler.send(200, CONTENT, Content_Length=len(CONTENT) + 100)
    handler.hang_up()


def announces_too_little(handler: Handler) -> None:
    handler.send(200, CONTENT, Content_Length=len(CONTENT) - 100)


def without_a_length(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    with contextlib.suppress(ConnectionError):
        handler.wfile.write(CONTENT)
    handler.hang_up()


def wrong_bytes(handler: Handler) -> None:
    serve(handler, CONTENT[::-1])


def silent(handler: Handler) -> None:
    handler.hang_up()


def slow(handler: Handler) -> None:
    handler.send(200, Content_Length=len(CONTENT))
    for begin in range(0, len(CONTENT), 30_000):
        handler.wfile.write(CONTENT[begin : begin + 30_000])
        time.sleep(0.01)


def never_ends(handler: Handler) -> None:
    handler.send(200, CONTENT[:1000], Content_Length=len(CONTENT))
    handler.site.gate.wait()


def breaks_off(sent: bytes, **headers: object) -> Act:
    def act(handler: Handler) -> None:
        handler.send(200, sent, **headers)
        handler.hang_up()

    return act


def serves(content: bytes, after: float = 0.0) -> Act:
    def act(handler: Handler) -> None:
        # Counted until the answer begins: who has read it may ask again before this thread goes on.
        with handler.site.waiting():
            time.sleep(after)
        serve(handler, content)

    return act


def answers(status: int, **headers: object) -> Act:
    return lambda handler: handler.send(status, b"<html>", **headers)


class Site:
    """A server with a record of what it was asked, and the store that its file is fetched into."""

    def __init__(self, store: Store) -> None:
        self.store, self.url = store, ""
        self.acts: dict[str, list[Act]] = {}
        self.asked: list[tuple[str, int]] = []
        self.connections: set[object] = set()
        self.gate = threading.Event()
        self.busiest = self._busy = 0
        self._lock = threading.Lock()

    def record(self, handler: Handler) -> None:
        with self._lock:
            self.asked.append((handler.path, handler.start()))
            self.connections.add(handler.client_address)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        with self._lock:
            self._busy += 1
            self.busiest = max(self.busiest, self._busy)
        try:
            yield
        finally:
            with self._lock:
                self._busy -= 1

    @contextlib.contextmanager
    def running(
        self, wrap: Callable[[socket.socket], socket.socket] = lambda plain: plain
    ) -> Iterator[str]:
        """Run the site and give its address."""
        with serving(type("Bound", (Handler,), {"site": self}), wrap) as address:
            yield address.removeprefix("http://")
            self.gate.set()

    def bring(self, *urls: str, size: int | None = None) -> DownloadOutcome:
        """Fetch CONTENT from paths or urls; whatever happens, the store holds it or nothing."""
        addresses = tuple(self.url + url if url.startswith("/") else url for url in urls)
        wanted = WantedFile("tf.tar.gz", DIGEST, addresses, size)
        (outcome,) = fetch([wanted], self.store.path, report=SILENCE.progress)
        assert outcome.obtained == self.store.holds(DIGEST)
        assert all(map(self.store.verify, self.store.digests()))
        return outcome


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask a server again at once."""
    monkeypatch.setattr(downloads, "PAUSES", (0.0, 0.0))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(Store(tmp_path / "vault"))
    with made.running() as address:
        made.url = f"http://{address}"
        yield made


def why(outcome: DownloadOutcome) -> str:
    """Return why the only url failed."""
    (failure,) = outcome.failures
    return failure.why


@pytest.mark.parametrize("act", [serve, slow, without_a_length])
@pytest.mark.medium
def test_an_honest_server_gives_the_file_whatever_its_pace(site: Site, act: Act) -> None:
    site.acts["/a"] = [act]
    assert site.bring("/a") == DownloadOutcome(
        WantedFile("tf.tar.gz", DIGEST, (f"{site.url}/a",)),
        obtained=True,
        url=f"{site.url}/a",
        failures=(),
    )
    assert site.store.path(DIGEST).read_bytes() == CONTENT
    assert [path.name for path in site.store.path(DIGEST).parent.iterdir()] == ["file"]


def test_what_the_store_has_is_not_asked_for(site: Site) -> None:
    site.bring("/a")
    assert site.bring("/a").url is None
    assert len(site.asked) == 1


def test_a_cut_file_goes_on_where_it_was_cut_as_long_as_it_grows(site: Site) -> None:
    site.acts["/a"] = [cut] * 6
    assert site.bring("/a").obtained
    starts = [start for _, start in site.asked]
    assert starts == sorted(set(starts))
    assert len(starts) == 7


def test_a_byte_an_answer_is_not_enough_to_be_asked_again_and_again(site: Site) -> None:
    site.acts["/a"] = [a_byte] * 50
    assert site.bring("/a", "/b").url == f"{site.url}/b"
    assert len(site.acts["/a"]) > 40


@pytest.mark.parametrize(
    "act", [without_ranges, other_range, answers(416)], ids=["no ranges", "another range", "416"]
)
def test_a_server_that_cannot_go_on_is_asked_for_all_of_it(site: Site, act: Act) -> None:
    site.acts["/a"] = [cut, act]
    assert site.bring("/a").obtained


def test_a_file_whose_beginning_came_from_another_file_is_fetched_anew(site: Site) -> None:
    site.acts["/a"] = [breaks_off(b"x" * 999, Content_Length=len(CONTENT))]
    assert site.bring("/a").obtained
    assert [start for _, start in site.asked] == [0, 999, 0]


def test_another_mirror_goes_on_with_what_the_first_one_began(site: Site) -> None:
    site.acts["/a"] = [cut, answers(404)]
    assert site.bring("/a", "/b").failures == (
        Failure(f"{site.url}/a", "the server answered 404 Not Found"),
    )
    assert site.asked[-1] == ("/b", len(CONTENT) // 3)


def test_what_arrived_in_one_run_is_kept_for_the_next(site: Site) -> None:
    site.acts["/a"] = [cut, answers(404)]
    assert not site.bring("/a").obtained
    assert site.bring("/a").obtained
    assert site.asked[-1] == ("/a", len(CONTENT) // 3)


def test_a_file_that_only_lacks_its_name_is_not_asked_for(site: Site) -> None:
    site.store.path(DIGEST).parent.mkdir(parents=True)
    site.store.path(DIGEST).with_name("partial").write_bytes(CONTENT)
    assert site.bring("/a").obtained
    assert site.asked == []


def test_a_server_that_announces_too_much_is_found_out_by_the_digest(site: Site) -> None:
    site.acts["/a"] = [announces_too_much]
    assert site.bring("/a").obtained
    assert len(site.asked) == 1


def test_a_server_that_announces_too_little_gives_other_bytes(site: Site) -> None:
    site.acts["/a"] = [announces_too_little]
    assert "other bytes than the pinned ones: sha256" in why(site.bring("/a"))


@pytest.mark.parametrize("act", [announces_too_much, announces_too_little])
def test_a_length_that_is_not_the_pinned_one_is_not_even_read(site: Site, act: Act) -> None:
    site.acts["/a"] = [act]
    assert "the file has 300,000" in why(site.bring(f"{site.url}/a", size=len(CONTENT)))


def test_a_server_that_sends_without_end_is_left_at_the_pinned_size(site: Site) -> None:
    site.acts["/a"] = [without_a_length]
    assert (
        why(site.bring("/a", size=1000))
        == "the server sends more than the 1,000 bytes that the file may have, or that the disk has to spare"
    )


def test_a_file_that_ends_early_without_a_length_is_known_by_the_pinned_size(site: Site) -> None:
    site.acts["/a"] = [breaks_off(CONTENT[:500], Content_Length="", Connection="close")]
    assert site.bring(f"{site.url}/a", size=len(CONTENT)).obtained
    assert site.asked == [("/a", 0), ("/a", 500)]


def test_wrong_bytes_are_refused_at_once_and_the_next_url_is_asked(site: Site) -> None:
    site.acts["/a"] = [wrong_bytes]
    outcome = site.bring("/a", "/b")
    assert outcome.url == f"{site.url}/b"
    assert site.asked == [("/a", 0), ("/b", 0)]


@pytest.mark.parametrize("status", [403, 404, 410, 204])
def test_an_answer_that_will_not_change_is_taken_at_once(site: Site, status: int) -> None:
    site.acts["/a"] = [answers(status)]
    assert f"the server answered {status}" in why(site.bring("/a"))
    assert len(site.asked) == 1


@pytest.mark.parametrize(
    "act", [answers(503), answers(500), answers(429), silent], ids=["503", "500", "429", "silent"]
)
def test_what_may_pass_is_tried_again_and_told_when_it_does_not(site: Site, act: Act) -> None:
    site.acts["/a"] = [act, act]
    assert site.bring("/a").obtained
    site.acts["/b"] = [act] * 3
    site.store.remove(DIGEST)
    assert len(site.bring("/b").failures) == 1
    assert [path for path, _ in site.asked] == ["/a"] * 3 + ["/b"] * 3


@pytest.mark.medium
@pytest.mark.parametrize(
    "after",
    [lambda: "1", lambda: email.utils.formatdate(time.time() + 2, usegmt=True)],
    ids=["seconds", "date"],
)
def test_a_busy_server_is_left_alone_as_long_as_it_asks(
    site: Site, after: Callable[[], str]
) -> None:
    site.acts["/a"] = [answers(429, Retry_After=after())]
    begun = time.monotonic()
    assert site.bring("/a").obtained
    assert time.monotonic() - begun > 0.9


def test_a_server_that_wants_too_much_patience_is_passed_over(site: Site) -> None:
    site.acts["/a"] = [answers(503, Retry_After=3600)]
    assert site.bring("/a", "/b").url == f"{site.url}/b"


def test_redirects_lead_to_http_and_nowhere_else(site: Site, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(CONTENT)
    site.acts["/a"] = [answers(302, Location=(tmp_path / "secret").as_uri())]
    site.acts["/b"] = [answers(302, Location="/b")] * 50
    site.acts["/c"] = [answers(301, Location="/d")]
    outcome = site.bring("/a", "/b", "/c")
    assert [failure.why for failure in outcome.failures] == [
        f"it redirects to {(tmp_path / 'secret').as_uri()}, which is not http or https",
        "the server redirects more than 20 times",
    ]
    assert outcome.url == f"{site.url}/c"


@pytest.mark.parametrize(
    "odd",
    [
        "ftp://127.0.0.1/a",
        "file:///etc/passwd",
        "http://[::1",
        "http:///a",
        "nonsense",
        "http://" + "x" * 70 + "/a",
    ],
)
def test_a_url_that_cannot_be_asked_is_a_failure_like_any_other(site: Site, odd: str) -> None:
    assert site.bring(odd, "/a").url == f"{site.url}/a"


def test_a_file_without_urls_is_not_obtained(site: Site) -> None:
    assert site.bring().failures == ()


@pytest.mark.medium
def test_a_host_that_is_not_there_is_not_waited_for_sixty_times(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "PAUSES", (0.5, 60))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        wanted = [
            WantedFile(str(number), f"{number:064}", (f"http://{address}/{number}",))
            for number in range(60)
        ]
        begun = time.monotonic()
        outcomes = fetch(wanted, site.store.path, report=SILENCE.progress)
    assert time.monotonic() - begun < 5
    assert all(
        "the host cannot be reached: Connection refused" in why(outcome) for outcome in outcomes
    )
    assert site.store.digests() == []


def many(url: str, count: int) -> tuple[list[WantedFile], dict[str, bytes]]:
    """Return files of their own, a few kilobytes each."""
    contents = {f"/{number}": str(number).encode() * 3000 for number in range(count)}
    return [
        WantedFile(path, hashlib.sha256(content).hexdigest(), (url + path,))
        for path, content in contents.items()
    ], contents


@pytest.mark.medium
def test_a_host_gets_no_more_requests_at_once_than_it_should_on_kept_connections(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "AT_ONCE", 6)
    monkeypatch.setattr(downloads, "PER_HOST", 3)
    wanted, contents = many(site.url, 24)
    site.acts |= {path: [serves(content, after=0.02)] for path, content in contents.items()}
    outcomes = fetch(wanted, site.store.path, report=SILENCE.progress)
    assert [outcome.url for outcome in outcomes] == [one.urls[0] for one in wanted]
    assert site.busiest == 3
    assert len(site.connections) <= 6


def test_one_that_fails_fails_no_other(site: Site) -> None:
    wanted, contents = many(site.url, 9)
    site.acts |= {path: [serves(content)] for path, content in contents.items()}
    site.acts["/4"] = [answers(404)]
    outcomes = fetch(wanted, site.store.path, report=SILENCE.progress)
    assert [outcome.wanted.name for outcome in outcomes if not outcome.obtained] == ["/4"]
    assert sorted(site.store.digests()) == sorted(
        outcome.wanted.sha256 for outcome in outcomes if outcome.obtained
    )


@pytest.mark.medium
def test_progress_counts_the_bytes_of_all_files_in_the_callers_thread(site: Site) -> None:
    heard: list[tuple[int, Progress]] = []
    site.acts["/a"] = [slow]
    wanted = [
        WantedFile("a.tar.gz", DIGEST, (f"{site.url}/a",), len(CONTENT)),
        WantedFile("b", "0" * 64, (f"{site.url}/b",), 300_000),
    ]
    fetch(
        wanted,
        site.store.path,
        report=lambda progress: heard.append((threading.get_ident(), progress)),
    )
    assert {thread for thread, _ in heard} == {threading.get_ident()}
    assert heard[-1][1] == Progress(len(CONTENT), len(CONTENT), "B", "2 of 2 files", failures=1)


@pytest.mark.medium
def test_the_same_digest_wanted_twice_is_fetched_once(site: Site) -> None:
    site.acts["/a"] = [slow]
    outcomes = fetch(
        [WantedFile("a", DIGEST, (f"{site.url}/a",)), WantedFile("b", DIGEST, (f"{site.url}/a",))],
        site.store.path,
        report=SILENCE.progress,
    )
    assert [outcome.obtained for outcome in outcomes] == [True, True]
    assert len(site.asked) == 1


def test_a_single_file_arrives_with_its_digest(site: Site, tmp_path: Path) -> None:
    assert download(f"{site.url}/a", tmp_path / "to/file") == DIGEST
    assert (tmp_path / "to/file").read_bytes() == CONTENT


def test_a_single_file_that_does_not_come_leaves_the_one_before(site: Site, tmp_path: Path) -> None:
    site.acts["/a"] = [answers(404)]
    (tmp_path / "file").write_text("old", "utf-8")
    with fails(SupplyError, f"{site.url}/a", 404):
        download(f"{site.url}/a", tmp_path / "file", pauses=(0.0, 0.0))
    assert len(site.asked) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text("utf-8") == "old"


def test_the_lack_of_an_answer_is_told_apart(tmp_path: Path) -> None:
    with fails(SilentServerError, "Connection refused"):
        download("http://127.0.0.1:9/file", tmp_path / "file", pauses=(0.0, 0.0))


def test_an_archive_that_a_server_calls_compressed_is_kept_as_it_is(
    site: Site, tmp_path: Path
) -> None:
    def packed(handler: Handler) -> None:
        assert handler.headers["Accept-Encoding"] == "identity"
        handler.send(200, CONTENT, Content_Encoding="gzip")

    site.acts["/a"] = [packed]
    assert download(f"{site.url}/a", tmp_path / "file", pauses=()) == DIGEST


FETCH = """
import sys
from pathlib import Path
from tfwright.progress import SILENCE
from tfwright.tools.http.downloads import WantedFile, fetch
from tfwright.vault.store import Store
outcome, = fetch([WantedFile("a", sys.argv[2], (sys.argv[3],))], Store(Path(sys.argv[1])).path, report=SILENCE.progress)
print(outcome.url or "found")
"""


def start(site: Site) -> "subprocess.Popen[str]":
    """Fetch CONTENT in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", FETCH, str(site.store.root), DIGEST, f"{site.url}/a"],
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.medium
def test_two_processes_bring_a_file_once(site: Site) -> None:
    site.acts["/a"] = [serves(CONTENT, after=1)]
    processes = [start(site) for _ in range(2)]
    assert sorted(process.communicate()[0].strip() for process in processes) == [
        "found",
        f"{site.url}/a",
    ]
    assert len(site.asked) == 1


def waiting_for(store: Store) -> None:
    """Wait until a file has begun to arrive."""
    partial = store.path(DIGEST).with_name("partial")
    while not (partial.exists() and partial.stat().st_size):
        time.sleep(0.01)


@pytest.mark.medium
@pytest.mark.parametrize(("number", "status"), [(signal.SIGKILL, -9), (signal.SIGINT, -2)])
def test_a_process_that_is_ended_leaves_what_arrived(
    site: Site, number: signal.Signals, status: int
) -> None:
    site.acts["/a"] = [never_ends]
    with start(site) as process:
        waiting_for(site.store)
        begun = time.monotonic()
        process.send_signal(number)
        assert process.wait() == status
    assert time.monotonic() - begun < 2
    assert site.bring("/a").obtained
    assert site.asked == [("/a", 0), ("/a", 1000)]


@pytest.mark.medium
def test_an_interrupted_fetch_leaves_no_thread_and_no_lock(site: Site) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.done:
            raise KeyboardInterrupt

    site.acts["/a"] = [never_ends]
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        fetch([WantedFile("a", DIGEST, (f"{site.url}/a",))], site.store.path, report=interrupt)
    assert threading.active_count() <= before + 1, "only the server's thread is left"
    assert site.bring("/a").obtained


def test_a_disk_that_takes_no_more_ends_the_run_with_a_remedy(site: Site) -> None:
    with largest_file(len(CONTENT) // 2), fails(HostError, "partial", "ulimit -f unlimited"):
        fetch(
            [WantedFile("a", DIGEST, (f"{site.url}/a",))], site.store.path, report=SILENCE.progress
        )
    assert not site.store.holds(DIGEST)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate authority, and certificates of 127.0.0.1 that are good and expired."""
    place = tmp_path_factory.mktemp("tls")
    (place / "san").write_text("subjectAltName=IP:127.0.0.1\n", "utf-8")
    for name in ("ca", "good", "expired"):
        run = f"req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}"
        openssl(place, run)
    made = "req -x509 -key ca.key -in ca.csr -out ca.pem -days 2"
    openssl(place, f"{made} -addext keyUsage=critical,keyCertSign")
    for name, days in (("good", 2), ("expired", 0)):
        signed = f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -out {name}.pem"
        openssl(place, f"{signed} -days {days} -extfile san")
    return place


def openssl(place: Path, arguments: str) -> None:
    subprocess.run(["openssl", *arguments.split()], cwd=place, check=True, capture_output=True)


def secure(site: Site, place: Path, name: str) -> contextlib.AbstractContextManager[str]:
    """Run a site with a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place / f"{name}.pem", place / f"{name}.key")
    return site.running(
        lambda plain: context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
    )


@pytest.mark.medium
@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_a_private_authority_is_believed_when_the_environment_or_the_system_names_it(
    site: Site, authority: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(authority / "ca.pem"))
    with secure(site, authority, "good") as address:
        assert site.bring(f"https://{address}/a").obtained


@pytest.mark.medium
@pytest.mark.parametrize("proxied", [False, True], ids=["of the server", "of a proxy"])
def test_an_expired_certificate_is_refused_at_once(
    site: Site, authority: Path, monkeypatch: pytest.MonkeyPatch, *, proxied: bool
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority / "ca.pem"))
    with secure(site, authority, "expired") as address:
        monkeypatch.setenv("http_proxy", f"https://{address}")
        url = "http://files.invalid/a" if proxied else f"https://{address}/a"
        assert "certificate has expired" in why(site.bring(url))
    assert site.asked == []


def test_a_certificate_of_an_authority_that_nobody_named_is_refused(
    site: Site, authority: Path
) -> None:
    with secure(site, authority, "good") as address:
        assert "unable to get local issuer certificate" in why(site.bring(f"https://{address}/a"))


def test_the_environments_proxy_is_asked(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", site.url)
    assert site.bring("http://files.invalid/a").obtained
    assert site.asked == [("http://files.invalid/a", 0)]


@pytest.mark.medium
def test_a_proxy_that_is_reached_by_tls_is_asked_for_plain_urls_too(
    site: Site, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority / "ca.pem"))
    with secure(site, authority, "good") as address:
        monkeypatch.setenv("http_proxy", f"https://{address}")
        assert site.bring("http://files.invalid/a").obtained


@pytest.mark.medium
def test_a_name_that_nobody_has_is_looked_up_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = []

    def lookup(host: str, *_: object, **__: object) -> list[object]:
        looked_up.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    monkeypatch.setattr(downloads, "PAUSES", (30, 60))
    wanted = [
        WantedFile(
            str(number),
            f"{number:064}",
            (f"http://a{number}.invalid/x", f"http://b{number}.invalid/x"),
        )
        for number in range(30)
    ]
    begun = time.monotonic()
    outcomes = fetch(wanted, site.store.path, report=SILENCE.progress)
    assert time.monotonic() - begun < 10
    assert len(looked_up) == len(set(looked_up)) == 60
    assert not any(outcome.obtained for outcome in outcomes)
