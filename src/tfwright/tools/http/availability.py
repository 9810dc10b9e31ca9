"""Servers, asked whether they have a file; nothing is transferred."""

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfwright.tools.http import headers, reply

if TYPE_CHECKING:
    import requests

NO_HEAD = frozenset({400, 403, 405, 501})
"""Answers of servers that refuse HEAD, and may still have the file."""


@dataclass(frozen=True)
class Availability:
    """What a server says about a file."""

    there: bool | None
    """None if the server did not answer."""
    why: str
    """What it said, or why it could not be asked."""
    size: int | None = None
    """In bytes, where it states it."""


def ask(url: str) -> Availability:
    """Ask for the head of a file; where that is refused, for the file, without reading it."""
    from tfwright.tools.http import connections

    try:
        with (
            connections.session(ssl.create_default_context()) as session,
            _asked(session, url) as answer,
        ):
            size = headers.content_length(answer) if answer.ok else None
            return Availability(answer.ok, headers.status(answer), size)
    except Exception as fault:  # noqa: BLE001 a server can make the libraries raise anything
        return Availability(there=None, why=str(reply.classified(fault)))


def _asked(session: "requests.Session", url: str) -> "requests.Response":
    plain = {"Accept-Encoding": "identity"}
    answer = reply.get(session, url, plain, "HEAD")
    if answer.status_code not in NO_HEAD:
        return answer
    answer.close()
    return reply.get(session, url, plain)
