"""A small document of a server, read whole into memory."""

import ssl
import time
from urllib.parse import urlsplit

from tfwright.errors import SupplyError
from tfwright.printable import printable
from tfwright.tools.http import headers, reply

PIECE = 64 * 1024
LONGEST_SECONDS = 120
"""A server that sends a byte now and then is given up after so many seconds."""


def fetch(url: str, limit: int) -> bytes:
    """Return a document of up to `limit` bytes; raise SupplyError if the server fails."""
    _insist_on_web(url)
    try:
        return _read(url, limit)
    except Exception as fault:
        # A server can make the libraries raise anything.
        raise _failed(url, str(reply.classified(fault))) from fault


def _insist_on_web(url: str) -> None:
    # file:// would read this host's own files.
    try:
        web = urlsplit(url).scheme in {"http", "https"}
    except ValueError as fault:
        raise _failed(url, str(fault)) from fault
    if not web:
        raise _failed(url, "only http:// and https:// addresses are read")


def _read(url: str, limit: int) -> bytes:
    from tfwright.tools.http import connections

    content = bytearray()
    deadline = time.monotonic() + LONGEST_SECONDS
    plain = {"Accept-Encoding": "identity"}
    with (
        connections.session(ssl.create_default_context()) as session,
        reply.get(session, url, plain) as answer,
    ):
        if not answer.ok:
            raise reply.RefusedError(f"the server answered {headers.status(answer)}")
        # read1 and not read, which would wait for all of a piece, however slowly it comes.
        while piece := answer.raw.read1(PIECE, decode_content=False):
            content += piece
            if len(content) > limit:
                raise reply.OversizeError(f"it has more than {limit:,} bytes")
            if time.monotonic() > deadline:
                raise reply.SlowError(f"it took more than {LONGEST_SECONDS} seconds")
    return bytes(content)


def _failed(url: str, why: str) -> SupplyError:
    return SupplyError(
        f"{printable(url, headers.LONGEST_SHOWN)} cannot be read: {why}",
        remedy="Check the address and the network.",
    )
