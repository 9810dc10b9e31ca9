"""Connections that give a server a fixed time for the head of its answer.

The timeout of a socket bounds the time between two bytes. A server that sends one byte of a header
each second would never meet it, so the head as a whole has a deadline of its own.
"""

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.response import HTTPResponse

HEAD_SECONDS = 30.0
"""Time for the status line and all headers together, interim answers included."""
MOST_HOSTS = MOST_KEPT = 64
"""Hosts whose connections a session keeps, and how many of each."""


@contextmanager
def _deadline(connection: HTTPConnection) -> Iterator[None]:
    """Cut the connection once the head takes too long. Raises TimeoutError then."""
    expired = threading.Event()
    cut_off = connection.sock

    def cut() -> None:
        expired.set()
        # SSLSocket.shutdown would drop the TLS state under the thread that reads.
        with suppress(OSError):
            socket.socket.shutdown(cut_off, socket.SHUT_RDWR)

    timer = threading.Timer(HEAD_SECONDS, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if expired.is_set():
            # http.client takes a cut within the headers for their end.
            raise TimeoutError(f"its headers took more than {HEAD_SECONDS:.0f} seconds") from None


class _Response(http.client.HTTPResponse):
    """Skips all interim answers (RFC 9110, 15.2); Python's own class knows only 100."""

    def _read_status(self) -> tuple[str, int, str]:
        # The deadline of the head ends a server that never says anything else.
        while True:
            version, status, reason = super()._read_status()  # type: ignore[misc]
            if status == http.HTTPStatus.SWITCHING_PROTOCOLS or status >= http.HTTPStatus.OK:
                return version, status, reason
            http.client.parse_headers(self.fp)


class _PlainConnection(HTTPConnection):
    response_class = _Response

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]
        with _deadline(self):
            return super().getresponse()


class _SecureConnection(_PlainConnection, HTTPSConnection):
    """The same, encrypted."""


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _PlainConnection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


def _with_deadline(manager: PoolManager) -> PoolManager:
    manager.pool_classes_by_scheme = {"http": _PlainPool, "https": _SecurePool}
    return manager


class _Adapter(HTTPAdapter):
    """Trusts what the system does; requests alone would trust its own list of authorities."""

    def __init__(self) -> None:
        self._trust = ssl.create_default_context()
        # Downloads of many threads share a session, and redirects of many hosts lead to one.
        super().__init__(MOST_HOSTS, MOST_KEPT)

    def init_poolmanager(self, *sizes: Any, **options: Any) -> None:  # noqa: ANN401 as given
        super().init_poolmanager(*sizes, ssl_context=self._trust, **options)
        _with_deadline(self.poolmanager)

    def cert_verify(self, conn: Any, _: str, *trusted: Any) -> None:  # noqa: ANN401 as given
        # A connection to a proxy may be secure where the url is not.
        super().cert_verify(conn, f"{conn.scheme}://", *trusted)  # type: ignore[no-untyped-call]

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:  # noqa: ANN401 as given
        return _with_deadline(super().proxy_manager_for(proxy, ssl_context=self._trust, **options))


class _Session(requests.Session):
    """Leaves redirects to its caller: requests would read the whole body of each, however long."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:  # noqa: ARG002
        return None


def connection_pool(**options: Any) -> PoolManager:  # noqa: ANN401 as given
    """Return a pool of connections for a caller that needs nothing of requests."""
    return _with_deadline(PoolManager(**options))


def session() -> requests.Session:
    """Return a session that keeps its connections and takes proxies from the environment.

    It trusts what the system does, and the authorities that $REQUESTS_CA_BUNDLE names. It stores no
    cookies. Threads may share it.
    """
    made = _Session()
    adapter = _Adapter()
    made.mount("https://", adapter)
    made.mount("http://", adapter)
    made.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return made
