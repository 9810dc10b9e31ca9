"""A cache server behind the proxy: bazel-remote, or nginx with DAV, over HTTP.

Nothing that it answers is believed, and nothing that it does can stop a build: each request has a
deadline, and a server that fails too often is left alone for the rest of the build.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tfwright.tools import files
from tfwright.tools.cache.store import LARGEST_ENTRY, PIECE

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 5.0
"""How long a server may be silent."""
SLOWEST = 1 << 20
"""Bytes a second; a blob that arrives more slowly is compiled in less time than it takes."""
STRIKES = 3
"""Faults in a row after which a server is left alone."""
PATIENCE_SECONDS = 20.0
"""Time lost with faults after which it is left alone, too."""
OK, NOT_FOUND, CREATED, NO_CONTENT = 200, 404, 201, 204
CONNECTIONS = 8


class ServerFaultError(Exception):
    """A cache server did not do what it was asked to; the text says what happened."""


@dataclass
class _Patience:
    """How much a server may still go wrong."""

    strikes: int = 0
    lost: float = 0.0

    @property
    def spent(self) -> bool:
        return self.strikes >= STRIKES or self.lost > PATIENCE_SECONDS


class CacheServer:
    """An HTTP server with ``/ac/<digest>`` and ``/cas/<digest>``."""

    def __init__(self, url: str) -> None:
        """Take the server's base url, perhaps with user and password; nothing is asked yet."""
        import urllib3

        from tfwright.tools.http import connections

        parsed = urllib3.util.parse_url(url)
        self._base = parsed._replace(auth=None).url.rstrip("/")
        headers = urllib3.util.make_headers(basic_auth=parsed.auth) if parsed.auth else {}
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS)
        self._pool: PoolManager = connections.pool(
            maxsize=CONNECTIONS, headers=headers, timeout=timeout, retries=False
        )
        self._patience = _Patience()
        self._lock = threading.Lock()

    @property
    def given_up(self) -> bool:
        """Whether the server failed so often that this build leaves it alone."""
        return self._patience.spent

    def entry(self, key: str) -> bytes | None:
        """Return an entry of the action cache; None if the server has none, or was given up.

        Raises ServerFaultError.
        """
        if self.given_up:
            return None
        with self._judged(), self._answer(f"ac/{key}") as answer:
            if answer is None:
                return None
            content = _read(answer, LARGEST_ENTRY, time.monotonic() + ANSWER_SECONDS)
            if len(content) >= LARGEST_ENTRY:
                raise ServerFaultError("an entry is too large")
            return content

    @contextmanager
    def blob(self, sha256: str, size: int) -> "Iterator[BlobStream | None]":
        """Give a blob's content to read; None if the server lacks it, or was given up.

        Raises ServerFaultError, also from reading.
        """
        if self.given_up:
            yield None
            return
        with self._judged(), self._answer(f"cas/{sha256}") as answer:
            deadline = time.monotonic() + ANSWER_SECONDS + size / SLOWEST
            yield BlobStream(answer, deadline) if answer is not None else None

    def send(self, kind: str, key: str, content: bytes | Path) -> None:
        """Store an entry (``ac``) or a blob (``cas``). Raises ServerFaultError, OSError."""
        if self.given_up:
            return
        with self._judged():
            if isinstance(content, bytes):
                self._put(f"{kind}/{key}", content, len(content))
                return
            with content.open("rb") as stream:
                self._put(f"{kind}/{key}", stream, content.stat().st_size)

    def has(self, sha256: str) -> bool:
        """Say whether the server claims to have a blob. Raises ServerFaultError."""
        if self.given_up:
            return False
        with self._judged(), self._answer(f"cas/{sha256}", "HEAD") as answer:
            return answer is not None

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def _put(self, path: str, body: bytes | BinaryIO, size: int) -> None:
        headers = {**self._pool.headers, "Content-Length": str(size)}
        answer = self._pool.request(
            "PUT",
            f"{self._base}/{path}",
            body=body,
            headers=headers,
            redirect=False,
            # The body of an answer may have no end.
            preload_content=False,
        )
        _finish(answer)
        if answer.status not in {OK, CREATED, NO_CONTENT}:
            raise ServerFaultError(f"it refused to store (HTTP {answer.status})")

    @contextmanager
    def _answer(self, path: str, method: str = "GET") -> "Iterator[BaseHTTPResponse | None]":
        """Ask the server; None where it says that there is nothing."""
        # A redirect could lead the credentials to another server: it counts as a fault.
        answer = self._pool.request(
            method,
            f"{self._base}/{path}",
            preload_content=False,
            decode_content=False,
            redirect=False,
        )
        try:
            if answer.status not in {OK, NOT_FOUND}:
                raise ServerFaultError(f"it answered HTTP {answer.status}")
            yield answer if answer.status == OK else None
        finally:
            _finish(answer)

    @contextmanager
    def _judged(self) -> Iterator[None]:
        """Count how the server behaves, and turn every fault into a ServerFaultError."""
        from urllib3.exceptions import HTTPError

        begun = time.monotonic()
        try:
            yield
        except (HTTPError, ServerFaultError, TimeoutError, ConnectionError) as fault:
            with self._lock:
                self._patience.strikes += 1
                self._patience.lost += time.monotonic() - begun
            if isinstance(fault, ServerFaultError):
                raise
            raise ServerFaultError(type(fault).__name__) from fault
        # Only faults in a row count; the lost time adds up over the whole build.
        with self._lock:
            self._patience.strikes = 0


class BlobStream:
    """A body that must arrive before its deadline."""

    def __init__(self, answer: "BaseHTTPResponse", deadline: float) -> None:
        """Take an answer whose body was not read yet; `deadline` is of the monotonic clock."""
        self._answer = answer
        self._deadline = deadline

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end. Raises ServerFaultError when too slow."""
        if time.monotonic() > self._deadline:
            raise ServerFaultError("it sends too slowly")
        # read1 returns what is there: a server that drips must not hold us for a whole piece.
        return self._answer.read1(min(size, PIECE), decode_content=False)


def _read(answer: "BaseHTTPResponse", most: int, deadline: float) -> bytes:
    """Return a small body."""
    stream = BlobStream(answer, deadline)
    return b"".join(files.pieces(stream.read, most))


def _finish(answer: "BaseHTTPResponse") -> None:
    """Let go of a connection; one whose body was not read to its end is not used again."""
    if answer.length_remaining == 0:
        # http.client notices the end of a body only when it is asked for more.
        answer.read1(1)
    else:
        answer.close()
    answer.release_conn()
