"""A cache server in memory, whose answers a test can spoil."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.serving import QuietHandler


@dataclass
class Backend:
    """A cache server in memory, and what is wrong with it."""

    content: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    delay: float = 0.0
    status: int = 0
    change: Callable[[bytes], bytes] = bytes
    url: str = ""
    full: bool = False
    authorised: list[str] = field(default_factory=list)


class BackendHandler(QuietHandler):
    protocol_version = "HTTP/1.1"
    backend: Backend

    def do_GET(self) -> None:
        backend = self.backend
        backend.asked.append(self.path)
        if given := self.headers["Authorization"]:
            backend.authorised.append(given)
        time.sleep(backend.delay)
        found = backend.content.get(self.path)
        status = backend.status or (404 if found is None else 200)
        body = backend.change(found) if status == 200 and found is not None else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            # A client may have read as much as it wants.
            with contextlib.suppress(OSError):
                self.wfile.write(body)

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.backend.status or (507 if self.backend.full else 201)
        if status == 201:
            self.backend.content[self.path] = body
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()
