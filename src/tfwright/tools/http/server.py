"""A loopback web server for an index.

It serves one folder, read-only, to this machine. A web server such as nginx serves other machines.
"""

import io
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO

from tfwright.errors import HostError
from tfwright.tools.render import content_policy

LOOPBACK = "127.0.0.1"
JSON_TYPES = ("application/vnd.pypi.simple.v1+json", "application/vnd.pypi.simple.latest+json")
FOR_EVER = "public, max-age=31536000, immutable"
"""A name never gets other bytes, so a copy of a wheel holds for ever."""
ASK_AGAIN = "no-cache"
"""A copy of a page is used only after the server said that it still holds."""


class _Handler(SimpleHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    server_version = "tfwright"
    sys_version = ""
    timeout = 60
    # A request that cannot be read has none.
    path = ""
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".whl": "application/octet-stream",
        ".metadata": "application/octet-stream",
        ".md": "text/markdown",
        ".log": "text/plain",
        ".xml": "application/atom+xml",
    }

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        """Say what is sent of the file that the request names, and open it."""
        page = _inside(Path(self.directory), Path(self.translate_path(self.path)))
        if page is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        asked = self.path.partition("?")[0]
        # pip and uv name JSON first; a browser and curl do not name it.
        accepted = " ".join(self.headers.get_all("Accept", [])).lower()
        json = any(kind in accepted for kind in JSON_TYPES) and (page / "index.json").is_file()
        if json and asked.endswith("/"):
            self.path = f"{asked}index.json"
        return super().send_head()

    def list_directory(self, path: object) -> None:
        """Refuse a folder without a page."""
        del path
        self.send_error(HTTPStatus.NOT_FOUND)

    def guess_type(self, path: object) -> str:
        """Return the type of a file."""
        page = Path(str(path)).relative_to(self.directory)
        if page.name == "index.json" and page.parts[0] in {"simple", "r"}:
            return JSON_TYPES[0]
        kind = super().guess_type(str(path))
        return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind

    def send_response(self, code: int, message: str | None = None) -> None:
        """Begin an answer with the headers that every one has."""
        super().send_response(code, message)
        kept = code == HTTPStatus.OK and self.path.startswith("/packages/")
        self.send_header("Cache-Control", FOR_EVER if kept else ASK_AGAIN)
        # The same address gives HTML or JSON: a cache must keep both apart.
        self.send_header("Vary", "Accept")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", content_policy())

    def log_message(self, *_: object) -> None:
        """Write no line for each request: a name in it may hold control characters."""


class _Server(ThreadingHTTPServer):
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
def listening(folder: Path, port: int = 0) -> Iterator[ThreadingHTTPServer]:
    """Listen on loopback for requests to `folder`; port 0 takes a free one.

    The caller runs ``serve_forever``. Raises HostError if the port is taken.
    """
    try:
        server = _Server((LOOPBACK, port), partial(_Handler, directory=str(folder.resolve())))
    except OSError as fault:
        raise HostError(
            f"Port {port} of {LOOPBACK} cannot be used: {fault.strerror}",
            remedy="Choose another port with --port, or stop the program that uses it.",
        ) from fault
    with server:
        yield server


def _inside(folder: Path, path: Path) -> Path | None:
    """Return a path below the folder of which something can be sent; None for any other."""
    # Hidden files are the catalog and unfinished pages.
    if any(part.startswith(".") for part in path.relative_to(folder).parts):
        return None
    try:
        # Resolved, since a link in the folder could lead out of it.
        there = path.is_file() or path.is_dir()
        return path if there and path.resolve().is_relative_to(folder) else None
    except (OSError, ValueError, RuntimeError):
        # The system refuses names that are too long, or have a zero byte.
        return None
