"""Downloads: whole and verified or not at all, tried again only where that can help."""

import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfwright.errors import SupplyError
from tfwright.progress import Progress
from tfwright.tools.http.downloads import download

CONTENT = b"TensorFlow" * 100_000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
QUICK = (0.0, 0.0)


class Server(http.server.BaseHTTPRequestHandler):
    """Answers as the list says, last first, and with the file when it is empty."""

    answers: list[int | str]
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.headers["Accept-Encoding"])
        answer = self.answers.pop() if self.answers else 200
        if answer == "cut":
            self._send(200, len(CONTENT), CONTENT[:-1])
        elif answer == "packed":
            self._send(200, len(CONTENT), CONTENT, encoding="gzip")
        elif isinstance(answer, int):
            self._send(answer, len(CONTENT), CONTENT)

    def _send(
        self, status: int, announced: int, content: bytes, encoding: str = "identity"
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(announced))
        self.send_header("Content-Encoding", encoding)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the library's own name for it
        """Say nothing."""


@pytest.fixture
def server() -> type[Server]:
    return type("Handler", (Server,), {"answers": [], "asked": []})


@pytest.fixture
def url(server: type[Server]) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), server) as running:
        threading.Thread(
            target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()
        yield f"http://127.0.0.1:{running.server_port}/tf/archive.tar.gz"
        running.shutdown()


def test_a_file_arrives_whole_with_its_digest_and_its_progress(url: str, tmp_path: Path) -> None:
    heard: list[Progress] = []
    assert download(url, tmp_path / "to/file", sha256=DIGEST, report=heard.append) == DIGEST
    assert (tmp_path / "to/file").read_bytes() == CONTENT
    assert heard[-1] == Progress(len(CONTENT), len(CONTENT), "B", "1 of 1 files")


def test_other_bytes_than_were_pinned_are_refused_and_not_asked_for_again(
    url: str, server: type[Server], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("old", "utf-8")
    with pytest.raises(SupplyError, match=f"sha256 {DIGEST}, wanted {'0' * 64}"):
        download(url, tmp_path / "file", sha256="0" * 64, pauses=QUICK)
    assert len(server.asked) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text("utf-8") == "old"


@pytest.mark.parametrize("fault", [503, 429, "cut", "silence"])
def test_what_may_pass_is_tried_again(
    url: str, server: type[Server], tmp_path: Path, fault: int | str
) -> None:
    server.answers += [fault, fault]
    download(url, tmp_path / "file", sha256=DIGEST, pauses=QUICK)
    assert len(server.asked) == 3


def test_a_file_that_is_not_there_is_asked_for_once(
    url: str, server: type[Server], tmp_path: Path
) -> None:
    server.answers += [404]
    with pytest.raises(SupplyError, match="the server answered 404 Not Found"):
        download(url, tmp_path / "file", pauses=QUICK)
    assert len(server.asked) == 1
    assert list(tmp_path.iterdir()) == []


def test_after_the_last_attempt_the_reason_is_told(tmp_path: Path) -> None:
    with pytest.raises(SupplyError, match="Connection refused"):
        download("http://127.0.0.1:9/file", tmp_path / "file", pauses=QUICK)


def test_an_archive_that_a_server_calls_compressed_is_kept_as_it_is(
    url: str, server: type[Server], tmp_path: Path
) -> None:
    server.answers += ["packed"]
    download(url, tmp_path / "file", sha256=DIGEST, pauses=())
    assert server.asked == ["identity"]
