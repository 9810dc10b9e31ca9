"""A small document of a server, read whole into memory."""

import time
from urllib.parse import urlsplit

from tfwright.errors import SupplyError

SECONDS = 20
LONGEST_SECONDS = 120
"""A server that sends a byte now and then is given up after so many seconds."""


def fetch(url: str, limit: int) -> bytes:
    """Return a document of up to `limit` bytes; raise SupplyError if the server fails."""
    if urlsplit(url).scheme not in {"http", "https"}:
        raise _failed(url, "only http:// and https:// addresses are read")
    import requests

    deadline = time.monotonic() + LONGEST_SECONDS
    content = bytearray()
    try:
        with requests.get(url, timeout=SECONDS, stream=True) as answer:
            if not answer.ok:
                raise _failed(url, f"status {answer.status_code}")
            for piece in answer.iter_content(64 * 1024):
                content += piece
                if len(content) > limit:
                    raise _failed(url, f"it has more than {limit:,} bytes")
                if time.monotonic() > deadline:
                    raise _failed(url, f"it took more than {LONGEST_SECONDS} seconds")
    except requests.RequestException as fault:
        raise _failed(url, type(fault).__name__) from fault
    return bytes(content)


def _failed(url: str, why: str) -> SupplyError:
    return SupplyError(
        f"{url} cannot be read: {why}", remedy="Check the address and the network."
    )
