"""One download: streamed, hashed on the way, continued after a cut, and in place whole and verified or not at all."""

import email.utils
import re
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tfwright.errors import Evidence, SupplyError
from tfwright.progress import SILENCE, Progress
from tfwright.tools import files
from tfwright.tools.http.partial import PIECE, Growing

if TYPE_CHECKING:
    import requests
    import urllib3

TIMEOUT = (5.0, 60.0)
"""Seconds to connect, and between two pieces. Connecting is quick or hopeless: a site without a network must not wait."""
PAUSES = (1.0, 4.0, 15.0)
"""Seconds before each further attempt."""
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers of a server that may be another one in a moment."""
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class RefusedError(Exception):
    """The answer will not change: trying this url again is of no use."""


class PassingError(Exception):
    """The next attempt may go better."""

    def __init__(self, why: str, after: float = 0.0) -> None:
        """Say why, and after how many seconds the server wants to be asked again."""
        super().__init__(why)
        self.after = after


class UnreachableError(PassingError):
    """The host has no address, takes no connection or gives no answer; it will not for another file either."""


class NoRangeError(PassingError):
    """The server cannot go on from where the file stands; it must be asked for all of it."""


@dataclass(frozen=True)
class Reply:
    """A server that is about to send a file, or the rest of one."""

    start: int
    """Where in the file its bytes begin."""
    total: int | None
    """Size of the whole file, as far as the server says."""
    limit: int | None
    """Size that the file must have, as far as it is known."""
    raw: "urllib3.BaseHTTPResponse"

    def into(self, growing: Growing) -> Iterator[int]:
        """Put the bytes where they belong as they arrive, and yield the file's size so far."""
        if not self.start:
            growing.restart()
        # read1 returns what is there, so that a slow line shows its progress and loses little.
        while piece := self.raw.read1(PIECE, decode_content=False):
            if self.limit is not None and growing.size + len(piece) > self.limit:
                raise RefusedError(
                    f"the server sends more than the {self.limit:,} bytes that the file has"
                )
            growing.append(piece)
            yield growing.size

    def cut(self) -> None:
        """End the transfer from another thread: whoever reads the pieces finds a cut."""
        with suppress(ValueError, RuntimeError, OSError):  # it ended by itself in this moment
            self.raw.shutdown()


def download(
    url: str,
    to: Path,
    *,
    sha256: str | None = None,
    hear: Callable[[Progress], None] = SILENCE.progress,
    pauses: tuple[float, ...] = PAUSES,
) -> str:
    """Fetch `url` into the file `to` and return its SHA-256.

    What may pass (no connection, a cut, a busy server) is tried again after each of `pauses`, and
    goes on where it was cut; a missing file is not, nor are bytes other than `sha256` promises.
    Raises SupplyError; `to` is then as it was.
    """
    with (
        session(ssl.create_default_context()) as asker,
        files.replacing(to) as temporary,
        closing(Growing(temporary.open("r+b", buffering=0))) as growing,
    ):
        try:
            _persist(lambda: _stream(asker, url, growing, hear), pauses)
        except (RefusedError, PassingError) as fault:
            raise _unobtainable(url, str(fault)) from fault
        found = growing.sha256()
        if sha256 not in {None, found}:
            raise _other_bytes(url, found, sha256)
        return found


def session(trust: ssl.SSLContext) -> "requests.Session":
    """Return a session that keeps its connections, takes proxies from the environment, and trusts what `trust` does.

    requests alone trusts its own list, or the one in $REQUESTS_CA_BUNDLE; both keep their effect.
    """
    import requests
    from requests.adapters import HTTPAdapter

    class Trusting(HTTPAdapter):
        def init_poolmanager(self, *sizes: Any, **options: Any) -> None:  # noqa: ANN401 handed on as it is
            super().init_poolmanager(*sizes, ssl_context=trust, **options)

        def proxy_manager_for(self, proxy: str, **options: Any) -> Any:  # noqa: ANN401 handed on as it is
            return super().proxy_manager_for(proxy, ssl_context=trust, **options)

    made = requests.Session()
    made.mount("https://", Trusting())
    return made


@contextmanager
def asking(
    session: "requests.Session", url: str, start: int, size: int | None = None
) -> Iterator[Reply]:
    """Ask for the bytes of `url` from `start` on; a server may send all of them all the same.

    No validator goes with the range: mirrors give different ones for the same bytes, and the digest
    of the whole decides in the end. Faults, those of reading the answer too, are raised as
    RefusedError, PassingError, UnreachableError or NoRangeError; another size than `size` is refused.
    """
    import requests
    import urllib3

    # The pinned bytes are the file's own: a server must not compress them, and nothing unpacks them here.
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={start}-"} if start else {})}
    try:
        with session.get(url, stream=True, timeout=TIMEOUT, headers=headers) as response:
            start, total = _accept(response, start)
            if size is not None and total not in {None, size}:
                raise RefusedError(f"the server announces {total:,} bytes, the file has {size:,}")
            yield Reply(start, total, size, response.raw)
    except (requests.RequestException, urllib3.exceptions.HTTPError) as fault:
        raise _sorted(fault) from fault


def _persist(attempt: Callable[[], None], pauses: tuple[float, ...]) -> None:
    """Try until it goes well or the pauses are used up."""
    for pause in pauses:
        try:
            return attempt()
        except PassingError as fault:
            time.sleep(max(pause, fault.after))
    return attempt()


def _stream(
    session: "requests.Session", url: str, growing: Growing, hear: Callable[[Progress], None]
) -> None:
    """Bring what is missing."""
    try:
        with asking(session, url, growing.size) as answer:
            for arrived in answer.into(growing):
                hear(Progress(arrived, answer.total, "B", _name(url)))
    except NoRangeError:
        growing.restart()
        raise


def _accept(response: "requests.Response", start: int) -> tuple[int, int | None]:
    """Return where the bytes begin and how large the file is, as far as the server says; raise if it has none for us."""
    status, headers = response.status_code, response.headers
    if status in PASSING:
        raise PassingError(_said(response), _seconds(headers.get("Retry-After", "")))
    if (
        status == 206  # noqa: PLR2004 Partial Content
        and (found := _RANGE.fullmatch(headers.get("Content-Range", "")))
        and int(found[1]) == start
    ):
        return start, None if found[2] == "*" else int(found[2])
    if start and status in {206, 416}:
        raise NoRangeError(_said(response))
    if status != 200:  # noqa: PLR2004 OK
        raise RefusedError(_said(response))
    announced = headers.get("Content-Length", "")
    return 0, int(announced) if announced.isdecimal() else None


def _said(response: "requests.Response") -> str:
    return f"the server answered {response.status_code} {response.reason}"


def _seconds(after: str) -> float:
    """Read a Retry-After header: seconds, or a date."""
    if after.isdecimal():
        return float(after)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(after).timestamp() - time.time())
    except ValueError:
        return 0.0


def _sorted(fault: Exception) -> Exception:
    """Return a library's fault as one of ours, by what can be done about it."""
    import requests
    from urllib3 import exceptions as lower

    chain = list(_chain(fault))
    why = str(chain[-1]) or type(chain[-1]).__name__
    if any(isinstance(one, ssl.SSLCertVerificationError) for one in chain):
        return RefusedError(f"its certificate is not accepted: {why}")
    unreachable = (
        lower.NewConnectionError,
        lower.ConnectTimeoutError,
        requests.exceptions.ProxyError,
        requests.ReadTimeout,
    )
    if any(isinstance(one, unreachable) for one in chain):
        return UnreachableError(f"the host cannot be reached: {why}")
    if isinstance(
        fault, requests.ConnectionError | requests.exceptions.ChunkedEncodingError | lower.HTTPError
    ):
        return PassingError(f"the connection broke: {why}")
    return RefusedError(why)


def _chain(fault: BaseException) -> Iterator[BaseException]:
    """Yield a fault and what caused it; the innermost cause says it best."""
    cause: BaseException | None = fault
    while cause:
        yield cause
        cause = cause.__context__


def _name(url: str) -> str:
    return urlsplit(url).path.rpartition("/")[2]


def _unobtainable(url: str, why: str) -> SupplyError:
    return SupplyError(
        f"{url} could not be downloaded: {why}",
        remedy="Check the network and the proxy variables, or name a mirror.",
    )


def _other_bytes(url: str, found: str, wanted: str | None) -> SupplyError:
    return SupplyError(
        f"{url} gave other bytes than were pinned: sha256 {found}, wanted {wanted}",
        remedy="Trust the pin, not the server: find out why the file changed before changing the pin.",
        evidence=Evidence(where=url),
    )
