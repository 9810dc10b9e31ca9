"""Servers, asked whether they have a file; nothing is transferred."""

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfwright.tools.http import download

if TYPE_CHECKING:
    import requests

REFUSED = frozenset({400, 403, 405, 501})
"""Answers of servers that do not like HEAD, and may still have the file."""


@dataclass(frozen=True)
class Availability:
    """What a server says about a file."""

    there: bool | None
    """None if nobody answered."""
    why: str
    """What it said, or why it could not be asked."""
    size: int | None = None
    """In bytes, where it says so."""


def ask(url: str) -> Availability:
    """Ask for the head of a file; where that is refused, for the file, without reading it."""
    import requests

    try:
        with download.session(ssl.create_default_context()) as session:
            answer = _head(session, url)
    except requests.RequestException as fault:
        return Availability(there=None, why=_innermost(fault))
    announced = answer.headers.get("Content-Length", "")
    return Availability(
        answer.ok,
        f"{answer.status_code} {answer.reason}",
        int(announced) if answer.ok and announced.isdecimal() else None,
    )


def _head(session: "requests.Session", url: str) -> "requests.Response":
    plain = {"Accept-Encoding": "identity"}
    answer = session.head(url, allow_redirects=True, timeout=download.TIMEOUT, headers=plain)
    if answer.status_code in REFUSED:
        answer = session.get(url, stream=True, timeout=download.TIMEOUT, headers=plain)
        answer.close()
    return answer


def _innermost(fault: BaseException) -> str:
    while fault.__context__:
        fault = fault.__context__
    return str(fault) or type(fault).__name__
