"""Posting JSON to an address that only a secret file may name."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from tfwright.errors import SupplyError

SECONDS = 20


def post(url: str, body: Mapping[str, object], token: str = "") -> None:
    """Post JSON; raise SupplyError, which names the server and no more of the address."""
    import requests

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    server = urlsplit(url).hostname or "the address"
    try:
        answer = requests.post(
            url, json=body, headers=headers, timeout=SECONDS, allow_redirects=False
        )
    except requests.RequestException as fault:
        # The message of requests holds the whole address, which may be a secret.
        raise _failed(server, type(fault).__name__) from None
    if not answer.ok:
        raise _failed(server, f"status {answer.status_code}")


def _failed(server: str, why: str) -> SupplyError:
    return SupplyError(
        f"{server} did not take the notice: {why}",
        remedy="The notice is kept and sent again in the next night.",
    )
