"""Questions to servers: redirects, headers as what strangers wrote, and what a fault means.

urllib3's Retry reads the whole body of an answer before it asks again, and a hostile body has no
end. So it only reads dates here; who asks decides whether, and when, a url is asked again.
"""

import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from tfwright.errors import SupplyError
from tfwright.printable import printable

if TYPE_CHECKING:
    import requests
    from requests import PreparedRequest

TIMEOUT = (5.0, 60.0)
"""Seconds to connect, and between two pieces. Connecting is quick or hopeless: a host without a
network must not wait."""
MOST_REDIRECTS = 20
MOST_REDIRECT_SECONDS = 60.0
"""For all redirects of one request: each head may take a while."""
LONGEST_SHOWN = 200
"""Characters of foreign text that a message quotes."""
PLAIN = {"Accept-Encoding": "identity"}
"""The pinned bytes are the file's own: a server must not compress them."""
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers of a server that may be another one in a moment."""
NO_HEAD = frozenset({400, 403, 405, 501})
"""Answers of servers that refuse HEAD, and may still have the file."""
NO_SUCH_NAME = frozenset(
    getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)
)
"""What the lookup of a host name returns if no host has it; EAI_AGAIN is a name server that does
not answer."""


class FaultKind(Enum):
    """What a fault says about asking again."""

    REFUSED = auto()
    """The answer will not change."""
    OVERSIZE = auto()
    """The server sends, or announces, more than the file can have: what arrived is worthless."""
    BROKEN = auto()
    """The next attempt may go better."""
    RESTART = auto()
    """The server cannot continue from where the file ends: it must be asked for all of it."""
    SLOW = auto()
    """Another server should be asked first."""
    UNREACHABLE = auto()
    """The host takes no connection or gives no answer; it will not for another file either."""
    NO_SUCH_HOST = auto()
    """No host has that name."""


SILENT = frozenset({FaultKind.UNREACHABLE, FaultKind.NO_SUCH_HOST})
"""What no server answered, so that it says nothing about the file."""


class RequestError(Exception):
    """A request that did not bring what was asked for."""

    def __init__(self, kind: FaultKind, why: str, after: float = 0.0) -> None:
        """Say why, and after how many seconds the server wants to be asked again."""
        super().__init__(why)
        self.kind, self.after = kind, after

    @classmethod
    def of(cls, fault: BaseException) -> "RequestError":
        """Judge an exception of a library by what can be done about it."""
        import requests
        from urllib3 import exceptions as lower

        if isinstance(fault, RequestError):
            return fault
        chain = list(_causes(fault))

        def has_cause(*kinds: type[BaseException]) -> bool:
            return any(isinstance(cause, kinds) for cause in chain)

        cause = re.sub(r"^\[Errno -?\d+\] ", "", str(chain[-1])) or type(chain[-1]).__name__
        why = printable(cause, LONGEST_SHOWN)
        if has_cause(ssl.SSLCertVerificationError):
            return cls(FaultKind.REFUSED, f"its certificate is not accepted: {why}")
        if "407" in why:
            reason = "the proxy wants another user name and password in its address (407)"
            return cls(FaultKind.REFUSED, reason)
        if has_cause(
            lower.NewConnectionError,
            lower.ConnectTimeoutError,
            requests.exceptions.ProxyError,
            requests.ReadTimeout,
        ):
            unknown = any(
                isinstance(cause, socket.gaierror) and cause.errno in NO_SUCH_NAME
                for cause in chain
            )
            kind = FaultKind.NO_SUCH_HOST if unknown else FaultKind.UNREACHABLE
            host = "its proxy" if has_cause(requests.exceptions.ProxyError) else "the host"
            late = isinstance(fault, requests.Timeout)
            symptom = "did not answer in time" if late else "cannot be reached"
            return cls(kind, f"{host} {symptom}: {why}")
        # Every exception of requests is an OSError. InvalidURL and its like are ValueErrors too.
        if isinstance(fault, lower.HTTPError | OSError) and not isinstance(fault, ValueError):
            return cls(FaultKind.BROKEN, f"the connection broke: {why}")
        if isinstance(fault, requests.exceptions.InvalidSchema):
            why = (
                "its proxy is a SOCKS proxy; name one for HTTP in http_proxy and https_proxy"
                if "SOCKS" in why
                else "its address is not one of http or https"
            )
        elif not isinstance(fault, requests.RequestException):
            why = f"the server's answer cannot be read: {why}"
        return cls(FaultKind.REFUSED, why)


def _causes(fault: BaseException) -> Iterator[BaseException]:
    """Yield a fault and what caused it; the innermost cause is the most precise."""
    cause: BaseException | None = fault
    while cause:
        yield cause
        hidden = cause.__suppress_context__
        cause = cause.__cause__ if hidden or cause.__cause__ else cause.__context__


def get(
    session: "requests.Session",
    url: str,
    headers: Mapping[str, str] = PLAIN,
    method: str = "GET",
    timeout: tuple[float, float] = TIMEOUT,
) -> "requests.Response":
    """Ask for a url and follow redirects; nothing of the body is read.

    requests would read the body of each redirect into memory, to its end. Raises RequestError, or
    whatever the libraries raise for an answer that makes no sense.
    """
    end = time.monotonic() + MOST_REDIRECT_SECONDS
    for _ in range(MOST_REDIRECTS + 1):
        if time.monotonic() > end:
            raise RequestError(
                FaultKind.SLOW, f"its redirects took more than {MOST_REDIRECT_SECONDS:.0f} seconds"
            )
        response = session.request(method, url, stream=True, timeout=timeout, headers=headers)
        if not response.is_redirect:
            return response
        response.close()
        # Header bytes arrive as Latin-1; browsers take those beyond ASCII for UTF-8, and so does
        # requests.
        location = response.headers["Location"].encode("latin-1").decode("utf-8")
        url = urljoin(response.url, location)
        if not is_web_url(url):
            shown = printable(url, LONGEST_SHOWN)
            raise RequestError(
                FaultKind.REFUSED, f"it redirects to {shown}, which is not http or https"
            )
    raise RequestError(FaultKind.REFUSED, f"the server redirects more than {MOST_REDIRECTS} times")


def is_web_url(url: str) -> bool:
    """Tell whether an address is one of http or https; others have no server that we ask."""
    return url.partition(":")[0].lower() in {"http", "https"}


def status_text(response: "requests.Response") -> str:
    """Return status and reason phrase, safe to show: ``404 Not Found``."""
    return f"{response.status_code} {printable(response.reason or '', 80)}".rstrip()


def parse_number(text: str) -> int | None:
    """Return the number in a header; None for anything that is not a plausible size or time."""
    # Python refuses to read numbers of more than 4,300 digits.
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def content_length(response: "requests.Response") -> int | None:
    """Return how many bytes the server announces, as far as it does."""
    return parse_number(response.headers.get("Content-Length", ""))


def retry_after(response: "requests.Response") -> float:
    """Return after how many seconds the server wants to be asked again; 0 if it does not say."""
    from urllib3.exceptions import InvalidHeader
    from urllib3.util.retry import Retry

    text = response.headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]+", text):
        # Too many digits to be read mean: never.
        seconds = parse_number(text)
        return float("inf") if seconds is None else float(seconds)
    try:
        return float(Retry().parse_retry_after(text)) if text else 0.0
    except (InvalidHeader, ValueError, OverflowError, OSError):
        # Dates that a calendar or the platform's clock does not know end up here.
        return 0.0


@dataclass(frozen=True)
class Availability:
    """What a server says about a file."""

    there: bool | None
    """None if the server did not answer, or answers only for now."""
    why: str
    """What it said, or why it could not be asked."""
    size: int | None = None
    """In bytes, where it states it."""


def ask(url: str, timeout: tuple[float, float] = TIMEOUT) -> Availability:
    """Ask for the head of a file; where that is refused, for the file, without reading it."""
    from tfwright.tools.http import connections

    try:
        with connections.session() as session:
            answer = get(session, url, method="HEAD", timeout=timeout)
            if answer.status_code in NO_HEAD:
                answer.close()
                answer = get(session, url, timeout=timeout)
            with answer:
                size = content_length(answer) if answer.ok else None
                there = None if answer.status_code in TRANSIENT else answer.ok
                return Availability(there, status_text(answer), size)
    except Exception as fault:  # noqa: BLE001 a server can make the libraries raise anything
        return Availability(there=None, why=str(RequestError.of(fault)))


PIECE = 64 * 1024
LONGEST_SECONDS = 120
"""A server that sends a byte now and then is given up after so many seconds."""


def fetch_document(url: str, limit: int) -> bytes:
    """Return a document of up to `limit` bytes; raise SupplyError if the server fails."""
    try:
        return _read_document(url, limit)
    except Exception as fault:
        # A server can make the libraries raise anything.
        raise SupplyError(
            f"{printable(url, LONGEST_SHOWN)} cannot be read: {RequestError.of(fault)}",
            remedy="Check the address and the network.",
        ) from fault


def _read_document(url: str, limit: int) -> bytes:
    from tfwright.tools.http import connections

    # file:// would read this host's own files.
    if not is_web_url(url):
        raise RequestError(FaultKind.REFUSED, "only http:// and https:// addresses are read")
    content = bytearray()
    deadline = time.monotonic() + LONGEST_SECONDS
    with connections.session() as session, get(session, url) as answer:
        if not answer.ok:
            raise RequestError(FaultKind.REFUSED, f"the server answered {status_text(answer)}")
        # read1 and not read, which would wait for all of a piece, however slowly it comes.
        while piece := answer.raw.read1(PIECE, decode_content=False):
            content += piece
            if len(content) > limit:
                raise RequestError(FaultKind.OVERSIZE, f"it has more than {limit:,} bytes")
            if time.monotonic() > deadline:
                raise RequestError(FaultKind.SLOW, f"it took more than {LONGEST_SECONDS} seconds")
    return bytes(content)


POST_SECONDS = 20


def post_json(url: str, body: Mapping[str, object], token: str = "") -> None:
    """Post JSON; raise SupplyError, which names the server and no more of the address."""
    from tfwright.tools.http import connections

    def authorised(request: "PreparedRequest") -> "PreparedRequest":
        # As `auth` and no header: ~/.netrc would replace a header.
        request.headers["Authorization"] = f"Bearer {token}"
        return request

    server, why = "the address", ""
    try:
        server = urlsplit(url).hostname or server
        with (
            connections.session() as session,
            # Only the status counts: a body may have no end. A redirect is not followed: what it
            # leads to would be another address than the user's.
            session.post(
                url,
                json=body,
                auth=authorised if token else None,
                timeout=POST_SECONDS,
                allow_redirects=False,
                stream=True,
            ) as answer,
        ):
            if not HTTPStatus.OK <= answer.status_code < HTTPStatus.MULTIPLE_CHOICES:
                why = f"status {answer.status_code}"
    # The message of a library holds the whole address, which may be a secret.
    except Exception as fault:  # noqa: BLE001 a server can make the libraries raise anything
        why = type(fault).__name__
    if why:
        raise SupplyError(
            f"{server} did not take the notice: {why}",
            remedy="The notice is kept and sent again in the next night.",
        )
