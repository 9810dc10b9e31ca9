"""One answer of a server: checked before it is read, and read no further than allowed."""

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tfwright.printable import printable
from tfwright.tools.http import headers
from tfwright.tools.http.partial import PIECE, HashingWriter

if TYPE_CHECKING:
    import requests
    import urllib3

TIMEOUT = (5.0, 60.0)
"""Seconds to connect, and between two pieces. Connecting is quick or hopeless: a host without a
network must not wait."""
MOST_REDIRECTS = 20
MOST_REDIRECT_SECONDS = 60.0
"""For all redirects of one request: each head may take a while."""
OK, RANGE_NOT_SATISFIABLE = 200, 416
NO_SUCH_NAME = frozenset(
    getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)
)
"""What the lookup of a host name returns if no host has it; EAI_AGAIN is a name server that does
not answer."""
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers of a server that may be another one in a moment."""
LARGEST = 4 * 2**30
"""Bytes of a file whose size neither a lock nor the server states: a server may send without
end."""


class RefusedError(Exception):
    """The answer will not change: asking this url again is of no use."""


class OversizeError(RefusedError):
    """The server sends, or announces, more than the file can have; what arrived is worthless."""


class TransientError(Exception):
    """The next attempt may go better."""

    def __init__(self, why: str, after: float = 0.0) -> None:
        """Say why, and after how many seconds the server wants to be asked again."""
        super().__init__(why)
        self.after = after


class UnreachableError(TransientError):
    """The host has no address, takes no connection or gives no answer.

    It will not for another file either.
    """

    def __init__(self, why: str, *, unknown: bool = False) -> None:
        """Say why, and whether no host has that name."""
        super().__init__(why)
        self.unknown = unknown


class NoRangeError(TransientError):
    """The server cannot continue from where the file ends; it must be asked for all of it."""


class SlowError(TransientError):
    """The server sends so slowly that another one should be asked first."""


@dataclass(frozen=True)
class SizeLimits:
    """How many bytes a file may have."""

    size: int | None
    """As a lock states it; then nothing else is accepted."""
    room: int
    """Bytes that are free on the disk which the file goes to."""

    def limit(self, announced: int | None) -> int:
        """Return how many bytes may be read of an answer that announces so many.

        Raises OversizeError for an announcement that cannot be, or must not be, believed.
        """
        if self.size is not None:
            if announced not in {None, self.size}:
                raise OversizeError(
                    f"the server announces {announced:,} bytes, the file has {self.size:,}"
                )
            return self.size
        # Without a stated size one file may not use up the disk that the others need too.
        most = min(LARGEST, self.room // 2)
        if announced is None:
            return most // 2
        if announced > most:
            raise OversizeError(
                f"the server announces {announced:,} bytes; without a size in the lock file, "
                f"at most {most:,} are accepted on this disk"
            )
        return announced

    @property
    def spared(self) -> int:
        """Bytes of the disk that are left alone, however many files come at once."""
        return 0 if self.size is not None else self.room // 4


@dataclass
class Pace:
    """How fast a server has to send."""

    least: float
    """Bytes a second."""
    window: float
    """Seconds over which that is measured."""
    end: float
    """When the server has had its time, however fast it is, by the monotonic clock."""
    _since: float = field(default_factory=time.monotonic)
    _before: int = 0

    def too_slow(self, received: int) -> bool:
        """Tell whether the server that has sent so many bytes since the beginning is too slow."""
        now = time.monotonic()
        if now > self.end:
            return True
        if now - self._since < self.window:
            return False
        slow = received - self._before < self.least * self.window
        self._since, self._before = now, received
        return slow


@dataclass
class Reply:
    """A server that is about to send a file, or the rest of one."""

    start: int
    """Where in the file its bytes begin."""
    total: int | None
    """Size of the whole file, as far as the server states it."""
    limit: int
    """The most bytes that the file may have."""
    spared: int
    """Bytes of the disk that must stay free."""
    raw: "urllib3.BaseHTTPResponse"
    pace: Pace
    received: int = 0
    """Bytes of this answer so far."""
    given_up: bool = False
    """Whether it was cut for being too slow."""

    def into(self, file: HashingWriter) -> Iterator[int]:
        """Append the bytes to `file` as they arrive, and yield its size each time.

        Raises the errors of this module for whatever the server does.
        """
        if not self.start:
            file.restart()
        while piece := self._next():
            if file.size + len(piece) > self.limit:
                raise OversizeError(
                    f"the server sends more than the {self.limit:,} bytes that the file may have"
                )
            if self.spared and file.free() < self.spared:
                raise OversizeError(
                    f"{self.spared:,} bytes of the disk are left for files whose size a lock "
                    "file states"
                )
            file.append(piece)
            self.received += len(piece)
            yield file.size

    def give_up_if_slow(self) -> None:
        """Cut the answer if it is too slow; called from another thread than the one that reads."""
        if self.pace.too_slow(self.received):
            self.given_up = True
            self.cut()

    def cut(self) -> None:
        """End the transfer from another thread: whoever reads the pieces meets the end."""
        with suppress(ValueError, RuntimeError, OSError):  # it ended by itself in this moment
            self.raw.shutdown()

    def _next(self) -> bytes:
        """Return what has arrived, so that a slow line shows its progress and loses little."""
        try:
            piece = self.raw.read1(PIECE, decode_content=False)
        except Exception as fault:
            # A cut surfaces as one of many exceptions of ssl, http.client and urllib3.
            if self.given_up:
                raise self._slow() from fault
            raise classified(fault) from fault
        if not piece and self.given_up:
            raise self._slow()
        return piece

    def _slow(self) -> SlowError:
        return SlowError(f"it sent only {self.received:,} bytes before its time was over")


@contextmanager
def asking(
    session: "requests.Session", url: str, start: int, bounds: SizeLimits, pace: Pace
) -> Iterator[Reply]:
    """Ask for the bytes of `url` from `start` on; a server may send all of them all the same.

    No validator goes with the range: mirrors give different ones for the same bytes, and the digest
    of the whole decides in the end. Raises the errors of this module.
    """
    # The pinned bytes are the file's own: a server must not compress them, and nothing unpacks them
    # here.
    wanted = {"Accept-Encoding": "identity"}
    if start:
        wanted["Range"] = f"bytes={start}-"
    try:
        response = get(session, url, wanted)
    except Exception as fault:
        # Libraries raise what they like for an answer that makes no sense: ValueError,
        # UnicodeError, …
        raise classified(fault) from fault
    with response:
        begin, total = _accepted(response, start)
        limit = bounds.limit(total)
        spared = bounds.spared
        yield Reply(begin, total, limit, spared, response.raw, pace)


def get(
    session: "requests.Session", url: str, wanted: dict[str, str], method: str = "GET"
) -> "requests.Response":
    """Ask for a url and follow redirects; nothing of the body is read.

    requests would read the body of each redirect into memory, to its end.
    """
    end = time.monotonic() + MOST_REDIRECT_SECONDS
    for _ in range(MOST_REDIRECTS + 1):
        if time.monotonic() > end:
            raise SlowError(f"its redirects took more than {MOST_REDIRECT_SECONDS:.0f} seconds")
        response = session.request(method, url, stream=True, timeout=TIMEOUT, headers=wanted)
        try:
            target = headers.redirect(response)
        except ValueError:
            response.close()
            raise
        if target is None:
            return response
        response.close()
        if not headers.on_the_web(target):
            shown = printable(target, headers.LONGEST_SHOWN)
            raise RefusedError(f"it redirects to {shown}, which is not http or https")
        url = target
    raise RefusedError(f"the server redirects more than {MOST_REDIRECTS} times")


def _accepted(response: "requests.Response", start: int) -> tuple[int, int | None]:
    """Return where the bytes begin and how large the file is, as far as the server states it.

    Raises an error of this module if the answer does not hold the file.
    """
    said = f"the server answered {headers.status(response)}"
    if response.status_code in TRANSIENT:
        raise TransientError(said, headers.retry_after(response))
    span = headers.content_range(response)
    if span and span[0] == start:
        return span
    if start and response.status_code in {headers.PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE}:
        raise NoRangeError(said)
    if response.status_code != OK:
        raise RefusedError(said)
    return 0, headers.content_length(response)


def classified(fault: BaseException) -> Exception:
    """Return a library's exception as one of this module, by what can be done about it."""
    import requests
    from urllib3 import exceptions as lower

    if isinstance(fault, RefusedError | TransientError):
        return fault
    chain = list(_chain(fault))
    why = printable(str(chain[-1]) or type(chain[-1]).__name__, headers.LONGEST_SHOWN)
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in chain):
        return RefusedError(f"its certificate is not accepted: {why}")
    unreachable = (
        lower.NewConnectionError,
        lower.ConnectTimeoutError,
        requests.exceptions.ProxyError,
        requests.ReadTimeout,
    )
    if any(isinstance(cause, unreachable) for cause in chain):
        unknown = any(
            isinstance(cause, socket.gaierror) and cause.errno in NO_SUCH_NAME for cause in chain
        )
        message = f"the host cannot be reached: {why}"
        return UnreachableError(message, unknown=unknown)
    broken = (
        requests.ConnectionError,
        requests.exceptions.ChunkedEncodingError,
        lower.HTTPError,
        OSError,
    )
    # InvalidURL and its like are OSErrors too, since every exception of requests is one.
    if isinstance(fault, broken) and not isinstance(fault, ValueError):
        return TransientError(f"the connection broke: {why}")
    if isinstance(fault, requests.RequestException):
        unusable = isinstance(fault, requests.exceptions.InvalidSchema)
        return RefusedError(_unusable_scheme(why) if unusable else why)
    return RefusedError(f"the server's answer cannot be read: {why}")


def _unusable_scheme(why: str) -> str:
    """Say in plain words why an address, or a proxy, is not asked."""
    if "SOCKS" in why:
        return "its proxy is a SOCKS proxy; name one for HTTP in http_proxy and https_proxy"
    return "its address is not one of http or https"


def _chain(fault: BaseException) -> Iterator[BaseException]:
    """Yield a fault and what caused it; the innermost cause is the most precise."""
    cause: BaseException | None = fault
    while cause:
        yield cause
        hidden = cause.__suppress_context__
        cause = cause.__cause__ if hidden or cause.__cause__ else cause.__context__
