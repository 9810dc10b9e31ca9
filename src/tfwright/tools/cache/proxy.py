"""The loopback HTTP server that Bazel knows as its cache.

It speaks as much HTTP/1.1 as Bazel does: GET, HEAD and PUT of ``/ac/<digest>`` and
``/cas/<digest>`` over connections that stay open. The standard library's server spends more time on
a request's headers than this one on the whole request, and a build makes ten thousand requests.
"""

import array
import errno
import os
import re
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tfwright.tools.cache.build_cache import BuildCache
from tfwright.tools.cache.store import LARGEST_ENTRY, PIECE

REQUEST = re.compile(rb"(GET|HEAD|PUT) /(ac|cas)/([0-9a-f]{64}) HTTP/1\.1\r\n")
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,15})[ \t]*\r\n", re.IGNORECASE)
CONTINUE = re.compile(rb"\r\nexpect:[ \t]*100-continue", re.IGNORECASE)
LONGEST_HEAD = 16 << 10
"""Bytes of a request's line and headers."""
BACKLOG = 128
PASSING = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED}
"""Faults of accept(2) after which a listening socket goes on."""
BREATHER_SECONDS = 0.1
"""Between two tries while the system has no descriptor left."""
LOOPBACK = "127.0.0.1"
SHORT = "/tmp"  # noqa: S108 made by mkdtemp
"""Where local sockets lie: their paths may have no more than a hundred characters."""
SOCKET_TABLES = ("/proc/self/net/tcp", "/proc/self/net/tcp6")
"""Where Linux says who has opened which socket.

https://docs.kernel.org/networking/proc_net_tcp.html
"""


@dataclass(frozen=True)
class _Request:
    """What Bazel asks for."""

    method: bytes
    kind: bytes
    digest: str
    size: int
    """Bytes of the body that follows."""


class CacheProxy:
    """A server on loopback, for one build."""

    def __init__(self, cache: BuildCache) -> None:
        """Listen on a free port; requests are answered from now on."""
        self._cache = cache
        self._listeners: list[socket.socket] = []
        self._folder: Path | None = None
        own = socket.create_server((LOOPBACK, 0), backlog=BACKLOG)
        self.port: int = own.getsockname()[1]
        self._listen(own, private=False)

    @property
    def url(self) -> str:
        """What Bazel is given, in this network and in others that `adopt` serves."""
        return f"http://{LOOPBACK}:{self.port}"

    def adopt(self) -> Path:
        """Return a local socket over which a program hands in listening sockets of other networks.

        ``netlisten.py`` is such a program. Only this user can reach the socket.
        """
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="tfwright-cache-", dir=SHORT))
            door = socket.socket(socket.AF_UNIX)
            door.bind(str(self._folder / "door"))
            door.listen()
            self._listeners.append(door)
            threading.Thread(target=self._adopt_all, args=(door,), daemon=True).start()
        return self._folder / "door"

    def close(self) -> None:
        """Stop listening."""
        for listener in self._listeners:
            with suppress(OSError):
                # A thread that waits in accept does not notice a mere close.
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _listen(self, listener: socket.socket, *, private: bool) -> None:
        """Answer on a listening socket; a `private` network has no programs of other users."""
        self._listeners.append(listener)
        arguments = (listener, private)
        threading.Thread(target=self._accept, args=arguments, daemon=True).start()

    def _adopt_all(self, door: socket.socket) -> None:
        """Take in the sockets that programs in other networks hand over."""
        for connection in _accepted(door):
            # A program that was killed meanwhile must not keep the next one out.
            with connection, suppress(OSError):
                for descriptor in _received(connection):
                    self._listen(socket.socket(fileno=descriptor), private=True)
                connection.sendall(b"1")

    def _accept(self, listener: socket.socket, private: bool) -> None:  # noqa: FBT001 of a thread
        for connection in _accepted(listener):
            threading.Thread(target=self._serve, args=(connection, private), daemon=True).start()

    def _serve(self, connection: socket.socket, private: bool) -> None:  # noqa: FBT001 of a thread
        """Answer the requests of a connection until either side closes it."""
        with connection, connection.makefile("rb") as incoming, suppress(OSError, _EndError):
            # It may have been closed already, which only this thread must notice.
            if not private and not _same_user(connection):
                return
            # Without TCP_NODELAY the kernel would hold back small answers.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                self._answer(_read_request(incoming, connection), incoming, connection)

    def _answer(self, request: _Request, incoming: BinaryIO, connection: socket.socket) -> None:
        if request.method == b"PUT":
            self._take(request, incoming)
            connection.sendall(_head(200, 0))
        elif request.kind == b"ac":
            entry = self._cache.lookup(request.digest)
            size = len(entry) if entry is not None else 0
            body = entry if entry is not None and request.method == b"GET" else b""
            connection.sendall(_head(404 if entry is None else 200, size) + body)
        else:
            self._give_blob(request, connection)

    def _give_blob(self, request: _Request, connection: socket.socket) -> None:
        """Send a blob; what cannot be verified is answered as missing."""
        stream = self._cache.blob(request.digest)
        if stream is None:
            connection.sendall(_head(404, 0))
            return
        with stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(0)
            # One packet for the head and the first piece: most blobs have no more than that.
            first = stream.read(PIECE) if request.method == b"GET" else b""
            connection.sendall(_head(200, size) + first)
            if len(first) < size and request.method == b"GET":
                connection.sendfile(stream, offset=len(first))

    def _take(self, request: _Request, incoming: BinaryIO) -> None:
        """Read a body to its end, whatever becomes of it: the next request follows it."""
        body = _Body(incoming, request.size)
        if request.kind == b"cas":
            self._cache.offer_blob(request.digest, request.size, body.read)
        elif request.size <= LARGEST_ENTRY:
            self._cache.offer(request.digest, body.read_all())
        body.drain()


class _EndError(Exception):
    """The connection ended, or what came over it is not HTTP that Bazel would send."""


class _Body:
    """The body of a request."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self._left = size

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes. Raises _EndError if the connection ends before the body."""
        if not self._left:
            return b""
        piece = self._stream.read(min(size, self._left))
        if not piece:
            raise _EndError
        self._left -= len(piece)
        return piece

    def read_all(self) -> bytes:
        return self.read(self._left)

    def drain(self) -> None:
        while self.read(PIECE):
            pass


def _read_request(incoming: BinaryIO, connection: socket.socket) -> _Request:
    """Read a request's head. Raises _EndError where there is none."""
    # Bazel reuses a connection, so a head that is not understood ends all that would follow it.
    lines = bytearray()
    while not lines.endswith(b"\r\n\r\n"):
        line = incoming.readline(LONGEST_HEAD)
        if not line or len(lines) > LONGEST_HEAD:
            raise _EndError
        lines += line
    asked = REQUEST.match(lines)
    if asked is None:
        connection.sendall(_head(400, 0))
        raise _EndError
    if CONTINUE.search(lines):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    length = LENGTH.search(lines)
    return _Request(asked[1], asked[2], asked[3].decode(), int(length[1]) if length else 0)


def _received(connection: socket.socket) -> "array.array[int]":
    """Return the file descriptors that come over a local socket."""
    descriptors = array.array("i")
    _, messages, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(descriptors.itemsize))
    for level, kind, content in messages:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content[: len(content) // descriptors.itemsize * 4])
    return descriptors


def _accepted(listener: socket.socket) -> Iterator[socket.socket]:
    """Yield connections until the listening socket is closed."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError as fault:
            if fault.errno not in PASSING:
                return
            time.sleep(BREATHER_SECONDS)
            continue
        yield connection


def _same_user(connection: socket.socket) -> bool:
    """Say whether our own user is at the other end: what another one stores would be sealed by us.

    Linux tells in its tables of sockets; where there are none, every program on loopback is served.
    """
    ends = (_as_listed(connection.getpeername()), _as_listed(connection.getsockname()))
    # Java opens sockets of IPv6 also for addresses of IPv4, which are then the end of a longer one.
    tables = [path for path in map(Path, SOCKET_TABLES) if path.exists()]
    for table in tables:
        for row in table.read_text("ascii").splitlines()[1:]:
            fields = row.split()
            # Both ends: two users may have sockets of one port at different addresses.
            if fields[1].endswith(ends[0]) and fields[2].endswith(ends[1]):
                return int(fields[7]) == os.getuid()
    return not tables


def _as_listed(address: tuple[str, int]) -> str:
    """Return an address of IPv4 and a port as the tables of sockets have them."""
    # The tables print the address as the processor holds it in a register.
    number = int.from_bytes(socket.inet_aton(address[0]), sys.byteorder)
    return f"{number:08X}:{address[1]:04X}"


_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found"}


def _head(status: int, size: int) -> bytes:
    """Return the head of an answer."""
    line = f"HTTP/1.1 {status} {_REASONS[status]}"
    kind = "Content-Type: application/octet-stream"
    return f"{line}\r\n{kind}\r\nContent-Length: {size}\r\n\r\n".encode()


@contextmanager
def serving(cache: BuildCache) -> Iterator[CacheProxy]:
    """Run a proxy while the block runs."""
    proxy = CacheProxy(cache)
    try:
        yield proxy
    finally:
        proxy.close()
        cache.close()
