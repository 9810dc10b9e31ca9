"""Servers at the level of sockets, which lie, drip or never end."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable

DIGITS = b"9" * 5000
Serve = Callable[[socket.socket], None]


def says(answer: bytes) -> Serve:
    """Return a server that sends these bytes and hangs up."""
    return lambda connection: connection.sendall(answer)


def repeats(beginning: bytes, piece: bytes, pause: float = 0.0) -> Serve:
    """Return a server that sends a beginning, then a piece without end."""

    def serve(connection: socket.socket) -> None:
        connection.sendall(beginning)
        while True:
            connection.sendall(piece)
            time.sleep(pause)

    return serve


class Hosts:
    """Servers at the level of sockets, which can send what no library would."""

    def __init__(self) -> None:
        self._listening: list[socket.socket] = []

    def start(self, serve: Serve) -> str:
        """Start a server and return its address."""
        listening = socket.create_server(("127.0.0.1", 0))
        self._listening.append(listening)
        threading.Thread(target=self._accept, args=(listening, serve), daemon=True).start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}/archive.tar.gz"

    def _accept(self, listening: socket.socket, serve: Serve) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=_serve, args=(connection, serve), daemon=True).start()

    def stop(self) -> None:
        """Take no more connections."""
        for listening in self._listening:
            listening.close()


def _serve(connection: socket.socket, serve: Serve) -> None:
    with contextlib.suppress(OSError), connection:
        connection.recv(65536)
        serve(connection)
