"""Headers of an answer, read as what they are: text that a stranger wrote."""

import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from tfwright.printable import printable

if TYPE_CHECKING:
    import requests

PARTIAL_CONTENT = 206
LONGEST_REASON = 80
"""Characters of a reason phrase that a message quotes."""
LONGEST_SHOWN = 200
"""Characters of any other foreign text that a message quotes."""
_NUMBER = re.compile(r"[0-9]{1,18}")
"""Longer numbers are not sizes, and Python refuses to read those of more than 4,300 digits."""
_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


def status(response: "requests.Response") -> str:
    """Return status and reason phrase, safe to show: ``404 Not Found``."""
    reason = printable(response.reason or "", LONGEST_REASON)
    return f"{response.status_code} {reason}".rstrip()


def number(text: str) -> int | None:
    """Return the number in a header; None for anything that is not a plausible size or time."""
    return int(text) if _NUMBER.fullmatch(text) else None


def content_length(response: "requests.Response") -> int | None:
    """Return how many bytes the server announces, as far as it does."""
    return number(response.headers.get("Content-Length", ""))


def content_range(response: "requests.Response") -> tuple[int, int | None] | None:
    """Return where a partial answer begins, and the size of the whole file if the server says it.

    None for an answer that is not partial, or whose range cannot be read.
    """
    found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if response.status_code != PARTIAL_CONTENT or not found:
        return None
    return int(found[1]), number(found[2])


def retry_after(response: "requests.Response") -> float:
    """Return after how many seconds the server wants to be asked again; 0 if it does not say."""
    text = response.headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]+", text):
        # Too many digits to be read mean: never.
        seconds = number(text)
        return float("inf") if seconds is None else float(seconds)
    return _until(text) if text else 0.0


def _until(date: str) -> float:
    """Return the seconds until a date; 0 for what is not one."""
    from urllib3.exceptions import InvalidHeader
    from urllib3.util.retry import Retry

    try:
        return float(Retry().parse_retry_after(date))
    except (InvalidHeader, ValueError, OverflowError, OSError):
        # Dates that a calendar or the platform's clock does not know end up here.
        return 0.0


def on_the_web(url: str) -> bool:
    """Tell whether an address is one of http or https; others have no server that we ask."""
    return url.partition(":")[0].lower() in {"http", "https"}


def redirect(response: "requests.Response") -> str | None:
    """Return the address that an answer redirects to; None if it does not redirect.

    Raises ValueError for an address that cannot be read.
    """
    location = response.headers.get("Location")
    if response.status_code not in _REDIRECTS or location is None:
        return None
    # Header bytes arrive as Latin-1; browsers take those beyond ASCII for UTF-8, and so does
    # requests.
    return urljoin(response.url, location.encode("latin-1").decode("utf-8"))
