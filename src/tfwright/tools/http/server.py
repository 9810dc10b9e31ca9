"""A loopback web server for an index: content negotiation, ranges and cache headers.

It serves one folder, read-only, to this machine. A web server such as nginx serves other machines.
"""

import datetime as dt
import email.utils
import http.server
import mimetypes
import os
import re
import socket
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import unquote, urlsplit

from tfwright.documents import filesystem
from tfwright.errors import HostError
from tfwright.tools import files
from tfwright.tools.render import content_policy

LOOPBACK = "127.0.0.1"
_INDEX = "application/vnd.pypi.simple"
JSON_TYPES = (f"{_INDEX}.v1+json", f"{_INDEX}.latest+json")
HTML_TYPES = ("text/html", "*/*", f"{_INDEX}.v1+html", f"{_INDEX}.latest+html")
ALLOWED = ("GET", "HEAD")
NOTHING: Mapping[str, str] = {}
FOR_EVER = "public, max-age=31536000, immutable"
"""A name never gets other bytes, so a copy of a wheel holds for ever."""
ASK_AGAIN = "no-cache"
"""A copy of a page is used only after the server said that it still holds."""
TYPES = {
    ".whl": "application/octet-stream",
    ".metadata": "application/octet-stream",
    ".md": "text/markdown",
    ".log": "text/plain",
    ".xml": "application/atom+xml",
}


class ByteRange(NamedTuple):
    """Part of a file."""

    start: int
    length: int


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    server_version = "tfwright"
    sys_version = ""
    timeout = 60

    folder: Path

    def do_GET(self) -> None:
        """Send a file, or for HEAD only what is said of it."""
        # A body is not read: what follows on the connection would pass for the next request.
        if {"Content-Length", "Transfer-Encoding"} & {name.title() for name in self.headers}:
            self.close_connection = True
        # RFC 9112, 3.2: without one, or with several, nobody knows which server is meant.
        if self.request_version == "HTTP/1.1" and len(self.headers.get_all("Host", [])) != 1:
            self.send_error(HTTPStatus.BAD_REQUEST)
        elif self.command in ALLOWED:
            self._answer(body=self.command == "GET")
        else:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": ", ".join(ALLOWED)})

    do_HEAD = do_POST = do_PUT = do_PATCH = do_GET  # noqa: N815 names of http.server
    do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = do_GET  # noqa: N815

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that cannot be read, and end the connection."""
        del message, explain
        self.close_connection = True
        # HTTP/0.9 has no status line, and counts until another version was read.
        self.request_version = self.protocol_version
        self._refuse(HTTPStatus(code))

    def log_message(self, *_: object) -> None:
        """Write no line for each request: a name in it may hold control characters."""

    def _answer(self, *, body: bool) -> None:
        """Send the file that the request names."""
        try:
            asked = urlsplit(self.path).path
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        path = _path_below(self.folder, unquote(asked))
        if path is None:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        if path.is_dir() and not asked.endswith("/"):
            # To the folder's own address; ``//x`` would be another server.
            self._respond(HTTPStatus.MOVED_PERMANENTLY, {"Location": f"/{asked.lstrip('/')}/"})
            return
        page = path
        if path.is_dir():
            page = path / "index.json"
            if not (prefers_json(", ".join(self.headers.get_all("Accept", []))) and page.is_file()):
                page = path / "index.html"
        # Opened before it is looked at: size and tag then belong to the bytes that are sent.
        try:
            stream = filesystem.open_file(page)
        except OSError:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        with stream:
            self._send(page, stream, body=body)

    def _send(self, page: Path, stream: IO[bytes], *, body: bool) -> None:
        """Send an open file, or the part of it that was asked for."""
        state = os.fstat(stream.fileno())
        if not stat.S_ISREG(state.st_mode):
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        size = state.st_size
        # A rebuilt page of the same length still gets another tag.
        tag = f'"{state.st_mtime_ns:x}-{size:x}"'
        changed = email.utils.format_datetime(filesystem.utc(state.st_mtime), usegmt=True)
        headers = self._file_headers(page) | {"ETag": tag, "Last-Modified": changed}
        status = conditional_status(self.headers, tag, changed)
        if status != HTTPStatus.OK:
            self._respond(status, headers)
            return
        # If the file changed since the client began, it needs the whole new one.
        same = self.headers.get("If-Range", tag) in {tag, changed} and self.command == "GET"
        wanted = parse_range(self.headers.get("Range", "") if same else "", size)
        if wanted is None:
            headers = self._file_headers(page) | {"Content-Range": f"bytes */{size}"}
            self._respond(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers)
            return
        headers |= {"Content-Length": str(wanted.length), "Accept-Ranges": "bytes"}
        if wanted != ByteRange(0, size):
            status = HTTPStatus.PARTIAL_CONTENT
            last = wanted.start + wanted.length - 1
            headers["Content-Range"] = f"bytes {wanted.start}-{last}/{size}"
        self._respond(status, headers)
        if body:
            stream.seek(wanted.start)
            # A client that has gone away is not an error.
            with suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
                self.wfile.writelines(files.chunks(stream.read, wanted.length))

    def _file_headers(self, page: Path) -> dict[str, str]:
        """Return the headers of a file, whatever is sent of it."""
        packaged = self.path.startswith("/packages/")
        guessed, packed = mimetypes.guess_type(page.name)
        kind = TYPES.get(page.suffix) or ("application/gzip" if packed else guessed)
        kind = kind or "application/octet-stream"
        if page.name == "index.json" and page.relative_to(self.folder).parts[0] in {"simple", "r"}:
            kind = JSON_TYPES[0]
        elif kind.startswith("text/"):
            kind += "; charset=utf-8"
        about = {"Cache-Control": FOR_EVER if packaged else ASK_AGAIN, "Content-Type": kind}
        # The same address gives HTML or JSON: a cache must keep both apart.
        return about | ({} if packaged else {"Vary": "Accept"})

    def _respond(self, status: HTTPStatus, headers: dict[str, str]) -> None:
        self.send_response(status)
        # A 304 stands for content whose length is not 0.
        length = {} if status == HTTPStatus.NOT_MODIFIED else {"Content-Length": "0"}
        ends = {"Connection": "close"} if self.close_connection else {}
        safety = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": content_policy()}
        for name, value in (safety | length | ends | headers).items():
            self.send_header(name, value)
        self.end_headers()

    def _refuse(self, status: HTTPStatus, headers: Mapping[str, str] = NOTHING) -> None:
        """Send a short error."""
        text = f"{status.value} {status.phrase}\n".encode()
        about = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(text))}
        self._respond(status, {**about, **headers})
        if self.command != "HEAD":
            self.wfile.write(text)


class _Server(http.server.ThreadingHTTPServer):
    """Answers each connection in a thread of its own."""

    # A client that opens more than wait here is refused; uv opens 50, and several may run.
    request_queue_size = 1024

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Say nothing of a client that has gone away; show any other error."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


@contextmanager
def listening(folder: Path, port: int = 0) -> Iterator[http.server.ThreadingHTTPServer]:
    """Listen on loopback for requests to `folder`; port 0 takes a free one.

    The caller runs ``serve_forever``. Raises HostError if the port is taken.
    """
    handler = type("_FolderHandler", (_Handler,), {"folder": folder.resolve()})
    try:
        server = _Server((LOOPBACK, port), handler)
    except OSError as fault:
        raise HostError(
            f"Port {port} of {LOOPBACK} cannot be used: {fault.strerror}",
            remedy="Choose another port with --port, or stop the program that uses it.",
        ) from fault
    with server:
        yield server


def conditional_status(asked: Message, tag: str, changed: str) -> HTTPStatus:
    """Return the status that a request's conditions want, by RFC 9110, 13.2.2.

    A tag counts before a date, and a weak tag names no bytes.
    """

    def holds(name: str, dated: str, *tags: str) -> bool | None:
        if header_values := asked.get_all(name):
            return not {"*", *tags}.isdisjoint(map(str.strip, ",".join(header_values).split(",")))
        with suppress(ValueError, OverflowError):
            since = email.utils.parsedate_to_datetime(asked.get(dated, ""))
            return since.replace(tzinfo=dt.UTC) >= email.utils.parsedate_to_datetime(changed)
        return None

    if holds("If-Match", "If-Unmodified-Since", tag) is False:
        return HTTPStatus.PRECONDITION_FAILED
    known = holds("If-None-Match", "If-Modified-Since", tag, f"W/{tag}")
    return HTTPStatus.NOT_MODIFIED if known else HTTPStatus.OK


def parse_range(asked: str, size: int) -> ByteRange | None:
    """Read a Range header: all of the file for none, or for one that is not understood.

    Several ranges at once are answered with the whole file, as RFC 9110 allows. None means that
    no byte of the range exists.
    """
    # At most 18 digits: Python refuses to convert numbers of thousands of them.
    found = re.fullmatch(r"(?i)bytes=(\d{0,18})-(\d{0,18})", asked.strip())
    if not found or not (found[1] or found[2]):
        return ByteRange(0, size)
    # "bytes=-500" asks for the last 500 bytes.
    if not found[1]:
        length = min(int(found[2]), size)
        return ByteRange(size - length, length) if length else None
    start = int(found[1])
    # Not a range at all, which is ignored.
    if found[2] and int(found[2]) < start:
        return ByteRange(0, size)
    last = min(int(found[2]), size - 1) if found[2] else size - 1
    return ByteRange(start, last - start + 1) if start <= last else None


def _path_below(folder: Path, asked: str) -> Path | None:
    """Return the path below the folder that a URL names; None for any other."""
    parts = [part for part in asked.split("/") if part]
    # Hidden files are the catalog and unfinished pages.
    if any(part.startswith(".") or "\0" in part or "\\" in part for part in parts):
        return None
    path = folder.joinpath(*parts)
    try:
        # The system refuses names that are too long, also to say whether they exist.
        path.lstat()
        # Resolved, since a link in the folder could lead out of it.
        return path if path.resolve().is_relative_to(folder) else None
    except (OSError, RuntimeError):
        return None


def prefers_json(accepted: str) -> bool:
    """Say whether an Accept header names the index as JSON, and no HTML with a greater weight.

    A browser and curl take anything, and get HTML.
    """
    weights = dict.fromkeys((*JSON_TYPES, *HTML_TYPES), 0.0)
    for part in accepted.lower().split(","):
        kind, *parameters = (each.strip() for each in part.split(";"))
        weight = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        weights[kind] = float(weight) if re.fullmatch(r"[01](\.\d{0,3})?", weight) else 0.0
    json = max(weights[kind] for kind in JSON_TYPES)
    return 0 < json >= max(weights[kind] for kind in HTML_TYPES)
