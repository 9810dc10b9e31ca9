"""HTTP servers of tests' own, on loopback for the time of a block."""

import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class QuietHandler(http.server.BaseHTTPRequestHandler):
    """Writes no line for each request."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(
    handler: Callable[..., http.server.BaseHTTPRequestHandler],
    wrap: Callable[[socket.socket], socket.socket] = lambda plain: plain,
) -> Iterator[str]:
    """Let a handler answer requests; give the server's address, ``http://127.0.0.1:1234``."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        # Clients that hang up, are killed or refuse a certificate are expected.
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        server.socket = wrap(server.socket)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
