"""Posting JSON to an address that only a secret file may name."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tfwright.errors import SupplyError

if TYPE_CHECKING:
    from requests import PreparedRequest

SECONDS = 20


def post(url: str, body: Mapping[str, object], token: str = "") -> None:
    """Post JSON; raise SupplyError, which names the server and no more of the address."""
    server, why = "the address", ""
    try:
        server = urlsplit(url).hostname or server
        status = _posted(url, body, token)
        # A redirect is not followed: what it leads to would be another address than the user's.
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            why = f"status {status}"
    # The message of a library holds the whole address, which may be a secret.
    except Exception as fault:  # noqa: BLE001 a server can make the libraries raise anything
        why = type(fault).__name__
    if why:
        raise SupplyError(
            f"{server} did not take the notice: {why}",
            remedy="The notice is kept and sent again in the next night.",
        )


def _posted(url: str, body: Mapping[str, object], token: str) -> int:
    from tfwright.tools.http import connections

    def authorised(request: "PreparedRequest") -> "PreparedRequest":
        # As `auth` and no header: ~/.netrc would replace a header.
        request.headers["Authorization"] = f"Bearer {token}"
        return request

    auth = authorised if token else None
    with (
        connections.session() as session,
        # Only the status counts: a body may have no end.
        session.post(
            url, json=body, auth=auth, timeout=SECONDS, allow_redirects=False, stream=True
        ) as answer,
    ):
        return answer.status_code
