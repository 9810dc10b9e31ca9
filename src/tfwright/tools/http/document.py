"""A small document of a server, read whole into memory."""

import time

from tfwright.errors import SupplyError
from tfwright.printable import printable
from tfwright.tools.http import client
from tfwright.tools.http.client import RequestError, Verdict

PIECE = 64 * 1024
LONGEST_SECONDS = 120
"""A server that sends a byte now and then is given up after so many seconds."""


def fetch(url: str, limit: int) -> bytes:
    """Return a document of up to `limit` bytes; raise SupplyError if the server fails."""
    try:
        return _read(url, limit)
    except Exception as fault:
        # A server can make the libraries raise anything.
        raise SupplyError(
            f"{printable(url, client.LONGEST_SHOWN)} cannot be read: {RequestError.of(fault)}",
            remedy="Check the address and the network.",
        ) from fault


def _read(url: str, limit: int) -> bytes:
    from tfwright.tools.http import connections

    # file:// would read this host's own files.
    if not client.on_the_web(url):
        raise RequestError(Verdict.REFUSED, "only http:// and https:// addresses are read")
    content = bytearray()
    deadline = time.monotonic() + LONGEST_SECONDS
    with connections.session() as session, client.get(session, url) as answer:
        if not answer.ok:
            why = f"the server answered {client.status(answer)}"
            raise RequestError(Verdict.REFUSED, why)
        # read1 and not read, which would wait for all of a piece, however slowly it comes.
        while piece := answer.raw.read1(PIECE, decode_content=False):
            content += piece
            if len(content) > limit:
                raise RequestError(Verdict.OVERSIZE, f"it has more than {limit:,} bytes")
            if time.monotonic() > deadline:
                raise RequestError(Verdict.SLOW, f"it took more than {LONGEST_SECONDS} seconds")
    return bytes(content)
