"""Downloads: streamed, hashed on the way, and in place whole and verified or not at all."""

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tfwright.errors import Evidence, SupplyError
from tfwright.progress import SILENCE, Progress
from tfwright.tools import files

if TYPE_CHECKING:
    import requests

TIMEOUT = (5.0, 60.0)
"""Seconds to connect, and between two pieces. Connecting is quick or hopeless: a site without a network must not wait."""
PIECE = 1 << 18
PAUSES = (1.0, 4.0, 15.0)
"""Seconds before each further attempt."""
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers of a server that may be another one in a moment."""


class _RefusedError(Exception):
    """The server's answer will not change: trying again is of no use."""


def download(
    url: str,
    to: Path,
    *,
    sha256: str | None = None,
    hear: Callable[[Progress], None] = SILENCE.progress,
    pauses: tuple[float, ...] = PAUSES,
) -> str:
    """Fetch `url` into the file `to` and return its SHA-256.

    What may pass (no connection, a cut, a busy server) is tried again after each of `pauses`; a
    missing file is not, nor are bytes other than `sha256` promises. Raises SupplyError; `to` is
    then as it was.
    """
    for pause in pauses:
        with suppress(ConnectionError):
            return _attempt(url, to, sha256, hear)
        time.sleep(pause)
    try:
        return _attempt(url, to, sha256, hear)
    except ConnectionError as fault:
        raise _unobtainable(url, str(fault)) from fault


def _attempt(url: str, to: Path, sha256: str | None, hear: Callable[[Progress], None]) -> str:
    """Try once. Raises ConnectionError for what may pass."""
    try:
        with files.replacing(to) as temporary:
            found = _stream(url, temporary, hear)
            if sha256 is not None and found != sha256:
                raise _other_bytes(url, found, sha256)
    except _RefusedError as fault:
        raise _unobtainable(url, str(fault)) from fault
    return found


def _stream(url: str, to: Path, hear: Callable[[Progress], None]) -> str:
    """Write what a server sends, and return its digest.

    Raises ConnectionError for what may pass, _RefusedError for what will not.
    """
    import requests
    import urllib3

    digest = hashlib.sha256()
    try:
        # The pinned bytes are the file's own: a server must not compress them, and nothing unpacks them here.
        with requests.get(url, stream=True, timeout=TIMEOUT, headers={"Accept-Encoding": "identity"}) as answer, to.open("wb") as output:
            total = _accept(answer)
            for piece in answer.raw.stream(PIECE, decode_content=False):
                output.write(piece)
                digest.update(piece)
                hear(Progress(output.tell(), total, "B", _name(url)))
    except (requests.ConnectionError, requests.Timeout, urllib3.exceptions.HTTPError) as fault:
        raise ConnectionError(_reason(fault)) from fault
    except requests.RequestException as fault:
        raise _RefusedError(_reason(fault)) from fault
    return digest.hexdigest()


def _accept(answer: "requests.Response") -> int | None:
    """Return the size that the server announces; raise if it has no file for us."""
    if not answer.ok:
        kind = ConnectionError if answer.status_code in PASSING else _RefusedError
        raise kind(f"the server answered {answer.status_code} {answer.reason}")
    return int(answer.headers["Content-Length"]) if "Content-Length" in answer.headers else None


def _reason(fault: BaseException) -> str:
    """Return the innermost cause of a failed request, which says it best."""
    while fault.__context__:
        fault = fault.__context__
    return str(fault) or type(fault).__name__


def _name(url: str) -> str:
    return urlsplit(url).path.rpartition("/")[2]


def _unobtainable(url: str, why: str) -> SupplyError:
    return SupplyError(f"{url} could not be downloaded: {why}", remedy="Check the network and the proxy variables, or name a mirror.")


def _other_bytes(url: str, found: str, wanted: str) -> SupplyError:
    return SupplyError(
        f"{url} gave other bytes than were pinned: sha256 {found}, wanted {wanted}",
        remedy="Trust the pin, not the server: find out why the file changed before changing the pin.",
        evidence=Evidence(where=url),
    )
