"""A remote cache: a server with GET and PUT that the directory of this host is synchronised with.

bazel-remote and nginx with DAV have blobs (``/cas/<sha256>``) and entries (``/ac/<digest>``). The
entries of a recipe's last build are in one blob, its index, and an entry under a name that all
hosts know points to it. Before a build what the directory lacks is fetched; after a good build what
the server lacks is sent. Each entry is sealed and each blob is compared with its name: nothing
that a server answers is believed. Nothing that it does can stop a build either: each request has a
deadline, and a server that fails too often is left alone.
"""

import base64
import hashlib
import json
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from pydantic import Base64Bytes, TypeAdapter, ValidationError

from tfwright.documents.names import Sha256
from tfwright.tools import files
from tfwright.tools.cache import messages
from tfwright.tools.cache.messages import Blob
from tfwright.tools.cache.store import (
    EMPTY,
    FAULTS,
    LARGEST_ENTRY,
    CacheStore,
    MissError,
    Seal,
    reason,
)
from tfwright.tools.cache.usage import CacheUse

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 5.0
"""How long a server may be silent."""
SLOWEST = 1 << 20
"""Bytes a second; a blob that arrives more slowly is compiled in less time than it takes."""
PULL_SECONDS = 1800.0
"""How long a build waits at its start for the remote cache."""
MOST_FAULTS = 20
"""Faults of a server after which it is left alone; each costs some seconds at most."""
OK, NOT_FOUND, CREATED, NO_CONTENT = 200, 404, 201, 204
CONNECTIONS = 8
LARGEST_INDEX = 64 << 20
"""Bytes; the 5,652 entries of a TensorFlow take about four million."""


_ENTRIES = TypeAdapter(dict[Sha256, Base64Bytes])
"""The entries of an index, by their actions, which become paths."""


class ServerFaultError(MissError):
    """A cache server did not do what it was asked to; the text says what happened."""

    def __str__(self) -> str:
        return f"the server: {super().__str__()}"


class RemoteCache:
    """The server's cache of one recipe and toolchain."""

    def __init__(self, url: str, recipe: str, store: CacheStore, seal: Seal, use: CacheUse) -> None:
        """Take the server's base url, perhaps with user and password; nothing is asked yet."""
        import urllib3

        from tfwright.tools.http import connections

        parsed = urllib3.util.parse_url(url)
        self._base = parsed._replace(auth=None).url.rstrip("/")
        headers = urllib3.util.make_headers(basic_auth=parsed.auth) if parsed.auth else {}
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS)
        self._pool = connections.connection_pool(
            maxsize=CONNECTIONS, headers=headers, timeout=timeout, retries=False
        )
        self._name = seal.key(recipe)
        self._store = store
        self._seal = seal
        self._use = use
        self._lock = threading.Lock()
        self._faults = 0
        """How often the server itself failed."""
        self.damaged: set[str] = set()
        """Blobs that the server has with other content; they are sent again."""
        self.moved = 0
        """Bytes of the blobs that were fetched or sent."""

    def pull(self, without: Collection[str] = ()) -> list[str]:
        """Fetch the entries of the recipe's last build, with their files, less some actions.

        Returns the actions whose entries are in the directory now.
        """
        deadline = time.monotonic() + PULL_SECONDS
        index: dict[str, bytes] = {}

        def fetch(action: str) -> None:
            payload = self._seal.unseal(action, index[action])
            if payload is None:
                raise MissError("an entry was not written by a trusted builder")
            for blob in self._store.files_of(messages.parse_action_result(payload)):
                if time.monotonic() > deadline:
                    raise ServerFaultError("it took too long to send everything")
                self._fetch_blob(blob)
            self._store.keep_entry(self._seal.toolchain, action, index[action])

        self._act_on_each([self._name], lambda _: index.update(self._read_index()))
        return self._act_on_each([action for action in index if action not in without], fetch)

    def push(self, actions: Iterable[str]) -> list[str]:
        """Send what the server lacks of a build; return the actions that its index lists now."""
        index: dict[str, str] = {}

        def send(action: str) -> None:
            # One may have been removed since, for want of space.
            if not self._store.entry_path(self._seal.toolchain, action).exists():
                return
            entry = self._store.entry(self._seal.toolchain, action)
            payload = self._seal.unseal(action, entry)
            if payload is None:
                raise MissError("an entry was not written by a trusted builder")
            for blob in self._store.files_of(messages.parse_action_result(payload)):
                if blob.sha256 == EMPTY:
                    continue
                # The server may claim to have a blob of this size.
                with self._request("HEAD", f"cas/{blob.sha256}") as answer:
                    length = answer.headers.get("Content-Length")
                    has = answer.status == OK and length in {None, str(blob.size)}
                if not has or blob.sha256 in self.damaged:
                    self._store.verify(blob)
                    with self._store.blob_path(blob.sha256).open("rb") as stream:
                        self._put(f"cas/{blob.sha256}", stream, blob.size)
            index[action] = base64.b64encode(entry).decode()

        def publish(_: str) -> None:
            text = json.dumps(index).encode()
            listed = Blob(hashlib.sha256(text).hexdigest(), len(text))
            # The blob first: an index never precedes what it points to.
            self._put(f"cas/{listed.sha256}", text, listed.size)
            pointer = messages.output_entry(listed)
            self._put(f"ac/{self._name}", pointer, len(pointer))

        self._act_on_each(actions, send)
        return list(index) if index and self._act_on_each([self._name], publish) else []

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def _act_on_each(self, names: Iterable[str], act: Callable[[str], None]) -> list[str]:
        """Do the same for several names at once; return those for which it went well."""

        def try_one(name: str) -> bool:
            if self._faults >= MOST_FAULTS:
                return False
            try:
                act(name)
            except FAULTS as fault:
                with self._lock:
                    self._use.count_fault(reason(fault))
                    self._faults += isinstance(fault, ServerFaultError)
                return False
            return True

        listed = list(names)
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            return [
                name for name, good in zip(listed, pool.map(try_one, listed), strict=True) if good
            ]

    def _read_index(self) -> Mapping[str, bytes]:
        """Return the entries of the recipe's last build: action = sealed entry."""
        with tempfile.TemporaryFile() as found:
            if not self._get(f"ac/{self._name}", LARGEST_ENTRY, found):
                return {}
            blobs = messages.parse_action_result(found.read()).blobs
        with tempfile.TemporaryFile() as found:
            # The size is the server's claim; a huge one is not downloaded.
            if not blobs or blobs[0].size > LARGEST_INDEX:
                return {}
            if not self._get(f"cas/{blobs[0].sha256}", blobs[0].size, found):
                return {}
            try:
                return _ENTRIES.validate_json(found.read())
            except ValidationError as fault:
                raise ServerFaultError("it sent an index that cannot be read") from fault

    def _fetch_blob(self, blob: Blob) -> None:
        """Fetch a blob unless the directory has it, verified."""
        if blob.sha256 == EMPTY:
            return
        with suppress(MissError):
            self._store.verify(blob)
            return
        with files.scratch_directory(self._store.incoming) as scratch:
            arrived = scratch / "blob"
            with arrived.open("wb") as output:
                there = self._get(f"cas/{blob.sha256}", blob.size, output)
            if not there:
                raise MissError("a file of a result is gone")
            good = self._store.adopt(arrived, blob.sha256)
        if not good:
            # The server has a file of that name, so `has` alone would spare the upload.
            self.damaged.add(blob.sha256)
            raise ServerFaultError("it sent a file with a wrong checksum")
        self.moved += blob.size

    def _get(self, path: str, most: int, to: BinaryIO) -> bool:
        """Write a body of at most `most` bytes to a file, and rewind; False if there is none."""
        deadline = time.monotonic() + ANSWER_SECONDS + most / SLOWEST
        with self._request("GET", path) as answer:
            if answer.status != OK:
                return False
            # read1 returns what is there: a server that drips must not hold us for a whole piece.
            for piece in files.chunks(partial(answer.read1, decode_content=False), most):
                if time.monotonic() > deadline:
                    raise ServerFaultError("it sends too slowly")
                to.write(piece)
        to.seek(0)
        return True

    def _put(self, path: str, body: bytes | BinaryIO, size: int) -> None:
        with self._request("PUT", path, body, size) as answer:
            if answer.status not in {OK, CREATED, NO_CONTENT}:
                raise ServerFaultError(f"it refused to store (HTTP {answer.status})")
        self.moved += size

    @contextmanager
    def _request(
        self, method: str, path: str, body: bytes | BinaryIO | None = None, size: int = 0
    ) -> "Iterator[BaseHTTPResponse]":
        """Ask the server. Raises ServerFaultError, also from reading."""
        from urllib3.exceptions import HTTPError

        headers = self._pool.headers
        try:
            answer = self._pool.request(
                method,
                f"{self._base}/{path}",
                body=body,
                headers=headers if body is None else {**headers, "Content-Length": str(size)},
                # The body of an answer may have no end, and a redirect could lead the
                # credentials to another server.
                preload_content=False,
                decode_content=False,
                redirect=False,
            )
            try:
                if answer.status not in {OK, NOT_FOUND, CREATED, NO_CONTENT} and body is None:
                    raise ServerFaultError(f"it answered HTTP {answer.status}")
                yield answer
            finally:
                # http.client notices the end of a body only when it is asked for more; a
                # connection whose body was not read to its end is not used again.
                if answer.length_remaining == 0:
                    answer.read1(1)
                else:
                    answer.close()
                answer.release_conn()
        except (HTTPError, TimeoutError, ConnectionError) as fault:
            raise ServerFaultError(type(fault).__name__) from fault
