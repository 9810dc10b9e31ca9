"""Images of a registry, by digest: whether it still has one, and a copy of it in the vault.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md
A registry is never believed: every document and every layer is compared with its digest.
"""

import hashlib
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal
from urllib.parse import urljoin

from tfwright.errors import SupplyError
from tfwright.tools import json_text
from tfwright.tools.container import image
from tfwright.tools.container.image import LARGEST_DOCUMENT, KeptImage

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

MANIFESTS = (
    image.MANIFEST_TYPE,
    image.INDEX_TYPE,
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
"""What a digest may name. Without this list a registry converts an image, and the digest of what it
sends is another one."""
HUB = {"docker.io": "registry-1.docker.io"}
"""Registries whose name in an image is not the name of their server."""
LOCAL = re.compile(r"(localhost|127\.0\.0\.1)(:\d+)?")
"""Registries that are asked without TLS."""
CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 30.0
MOST_REDIRECTS = 5
PIECE = 1 << 20
SLOWEST = 50_000
"""Bytes a second that a registry has to send in the mean."""
OK, REFUSED, NOT_FOUND = 200, 401, 404
Presence = Literal["there", "gone", "no answer"]


@dataclass(frozen=True)
class RegistryPlace:
    """Where a registry keeps an image."""

    server: str
    """Its base address, without a slash at the end."""
    repository: str

    def url(self, kind: str, digest: str) -> str:
        """Return the address of a manifest or a blob."""
        return f"{self.server}/v2/{self.repository}/{kind}/{digest}"


class RegistryError(Exception):
    """A registry did not give what it was asked for; the text says why."""


def place_of(name: str) -> RegistryPlace | None:
    """Return the place of an image, or None for a name without a registry.

    Such a name is one that somebody gave to an image of their own. Docker would look for it on its
    hub, where a stranger may hold the name.
    """
    host, _, repository = name.partition("/")
    if not repository or not ("." in host or ":" in host or host == "localhost"):
        return None
    scheme = "http" if LOCAL.fullmatch(host) else "https"
    return RegistryPlace(f"{scheme}://{HUB.get(host, host)}", repository)


def presence(place: RegistryPlace, digest: str) -> tuple[Presence, str]:
    """Ask whether a registry has an image; return also what it said."""
    try:
        url = place.url("manifests", digest)
        with _asked(_RegistrySession(), url, "HEAD") as answer:
            if answer.status == OK:
                return "there", "HTTP 200"
            # 401 and 403 are what registries say of repositories that were deleted, too.
            gone = answer.status in {NOT_FOUND, REFUSED, 403, 410}
            return ("gone" if gone else "no answer"), f"HTTP {answer.status}"
    except RegistryError as fault:
        return "no answer", str(fault)


def pull(name: str, digest: str, vault: Path) -> KeptImage:
    """Copy an image into the vault, for this machine's kind of processor.

    Raises SupplyError if the registry does not have it, does not answer, or sends other bytes.
    """
    place = place_of(name)
    if place is None:
        raise image.missing(vault, digest)
    try:
        with image.arriving(vault) as incoming:
            _copy(place, digest, incoming)
            return image.settled(incoming, digest, vault)
    except (RegistryError, OSError) as fault:
        raise SupplyError(
            f"{name} cannot be pulled by its digest {digest[:19]}…: {fault}",
            remedy="Unpack a bundle that carries the image, or copy vault/images from a host that "
            "has it; else build the image again and pin the new digest.",
        ) from fault


def _copy(place: RegistryPlace, digest: str, incoming: Path) -> None:
    """Copy the documents and blobs of an image."""
    session = _RegistrySession()
    blobs = incoming / "blobs/sha256"
    blobs.mkdir(parents=True)
    _bring(session, place.url("manifests", digest), LARGEST_DOCUMENT, blobs)
    manifest = image.manifest_of(incoming, digest)
    if manifest.digest != digest:
        named = place.url("manifests", manifest.digest)
        _bring(session, named, LARGEST_DOCUMENT, blobs)
        manifest = image.manifest_of(incoming, digest)
    for part, size in zip(manifest.parts, manifest.sizes, strict=True):
        # The manifest has the digest that the recipe pins, so that its sizes can be believed.
        _bring(session, place.url("blobs", part), size, blobs)


def _bring(session: "_RegistrySession", url: str, limit: int, blobs: Path) -> None:
    """Copy one file of at most `limit` bytes; its content must have the digest in its url."""
    digest = url.rpartition("/")[2]
    named = image.DIGEST.fullmatch(digest)
    if named is None:
        raise RegistryError(f"{digest!r} is not a sha256 digest")
    # Images repeat layers, an empty one above all.
    if (blobs / named[1]).exists():
        return
    free = shutil.disk_usage(blobs).free
    if limit > free:
        raise RegistryError(f"it has {limit:,} bytes, and {free:,} are free")
    with _asked(session, url, "GET") as answer:
        if answer.status != OK:
            raise RegistryError(f"the registry answered HTTP {answer.status} for {digest[:19]}…")
        with (blobs / named[1]).open("wb") as output:
            found = _hashed(answer, output, limit)
    if found != named[1]:
        raise RegistryError(f"the registry sent other bytes than {digest[:19]}…")


def _hashed(answer: "BaseHTTPResponse", output: BinaryIO, limit: int) -> str:
    """Write a body; return its digest. Raises RegistryError if it is too large, or too slow."""
    digest = hashlib.sha256()
    for piece in _pieces(answer, limit):
        digest.update(piece)
        output.write(piece)
    return digest.hexdigest()


def _pieces(answer: "BaseHTTPResponse", limit: int) -> Iterator[bytes]:
    """Yield a body as it arrives. Raises RegistryError if it is too large, or too slow."""
    from urllib3.exceptions import HTTPError

    left = limit
    deadline = time.monotonic() + ANSWER_SECONDS + limit / SLOWEST
    try:
        # read1 returns what is there: a server that drips must not hold us for a whole piece.
        while piece := answer.read1(PIECE, decode_content=False):
            left -= len(piece)
            if left < 0:
                raise RegistryError(f"the registry sent more than {limit:,} bytes")
            if time.monotonic() > deadline:
                raise RegistryError("the registry sends too slowly")
            yield piece
    except HTTPError as fault:
        raise RegistryError(f"the connection broke: {type(fault).__name__}") from fault


class _RegistrySession:
    """Connections to one registry, with the token that it handed out."""

    def __init__(self) -> None:
        import urllib3

        from tfwright.tools.http import connections

        # urllib3 would sleep for as long as a Retry-After says.
        again = urllib3.Retry(2, respect_retry_after_header=False)
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS)
        self.pool: PoolManager = connections.pool(timeout=timeout, retries=again)
        self.token = ""

    def headers(self, *, trusted: bool) -> Mapping[str, str]:
        """Return the headers of a request; the token is for the registry itself only."""
        accept = {"Accept": ", ".join((*MANIFESTS, "*/*")), "Accept-Encoding": "identity"}
        return (
            {**accept, "Authorization": f"Bearer {self.token}"}
            if self.token and trusted
            else accept
        )


@contextmanager
def _asked(session: _RegistrySession, url: str, method: str) -> "Iterator[BaseHTTPResponse]":
    """Ask a registry; a public one hands out the token that it wants. Raises RegistryError."""
    from urllib3.exceptions import HTTPError

    try:
        answer = _request(session, method, url)
        if answer.status == REFUSED and not session.token:
            # Not drained: the body of a refusal may have no end.
            answer.close()
            session.token = _token(session, answer.headers.get("WWW-Authenticate", ""))
            answer = _request(session, method, url)
    # ValueError: an address, in a redirect, that cannot be read.
    except (HTTPError, ValueError) as fault:
        raise RegistryError(f"{_server(url)} does not answer: {type(fault).__name__}") from fault
    try:
        yield answer
    finally:
        answer.close()


def _request(session: _RegistrySession, method: str, url: str) -> "BaseHTTPResponse":
    # Blobs are often behind a redirect to another host. urllib3 would read the whole body of each
    # redirect, which may have no end.
    asked = url
    for _ in range(MOST_REDIRECTS + 1):
        headers = session.headers(trusted=_server(asked) == _server(url))
        answer = session.pool.request(
            method, asked, headers=headers, preload_content=False, redirect=False
        )
        target = answer.get_redirect_location()
        if not target:
            return answer
        answer.close()
        asked = urljoin(asked, target)
    raise RegistryError(f"{_server(url)} redirects more than {MOST_REDIRECTS} times")


def _server(url: str) -> str:
    """Return scheme and host of an address."""
    return "/".join(url.split("/", 3)[:3])


def _token(session: _RegistrySession, challenge: str) -> str:
    """Ask for the token that a registry gives to anyone; empty if it gives none.

    https://distribution.github.io/distribution/spec/auth/token/
    """
    said = dict(CHALLENGE.findall(challenge))
    realm = said.pop("realm", "")
    if not realm.startswith("https://"):
        return ""
    fields = {name: said[name] for name in ("service", "scope") if name in said}
    answer = session.pool.request(
        "GET", realm, fields=fields, preload_content=False, redirect=False
    )
    try:
        given = json_text.parsed(b"".join(_pieces(answer, LARGEST_DOCUMENT)))
    except ValueError:
        return ""
    finally:
        answer.close()
    token = given.get("token") or given.get("access_token") if isinstance(given, dict) else ""
    # It becomes a header, where a line's end would begin another one.
    text = str(token or "")
    return text if text.isascii() and text.isprintable() else ""
