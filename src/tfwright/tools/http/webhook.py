"""Posting JSON to an address that only a secret file may name."""

import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from tfwright.errors import SupplyError

SECONDS = 20
_TAKEN, _REDIRECTED = 200, 300


def post(url: str, body: Mapping[str, object], token: str = "") -> None:
    """Post JSON; raise SupplyError, which names the server and no more of the address."""
    from tfwright.tools.http import connections

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    server = "the address"
    try:
        server = urlsplit(url).hostname or server
        with (
            connections.session(ssl.create_default_context()) as session,
            # Streamed: the body of the answer says nothing, and may have no end.
            session.post(
                url,
                json=body,
                headers=headers,
                timeout=SECONDS,
                allow_redirects=False,
                stream=True,
            ) as answer,
        ):
            status = answer.status_code
    except Exception as fault:  # noqa: BLE001 a server can make the libraries raise anything
        # The message of requests holds the whole address, which may be a secret.
        raise _failed(server, type(fault).__name__) from None
    if not _TAKEN <= status < _REDIRECTED:
        raise _failed(server, f"status {status}")


def _failed(server: str, why: str) -> SupplyError:
    return SupplyError(
        f"{server} did not take the notice: {why}",
        remedy="The notice is kept and sent again in the next night.",
    )
