"""What the proxy answers: hits whose every byte is verified, and a miss for everything else."""

import hashlib
import io
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from tfwright.tools.cache import action_result, seal
from tfwright.tools.cache.action_result import ActionResult, Blob
from tfwright.tools.cache.server import CacheServer, ServerFaultError
from tfwright.tools.cache.store import (
    EMPTY,
    CacheDirectory,
    CacheFullError,
    DamagedBlobError,
)
from tfwright.tools.cache.tally import Tally
from tfwright.tools.cache.wire import MalformedMessageError

LOOKUP_SECONDS = 30.0
"""How long a lookup may take. Bazel itself gives up after 60, and before 0.18.1 fails then."""
UPLOADS = 4096
"""Results that wait to be sent to the server; further ones are only kept here."""
DRAIN_SECONDS = 60.0
"""How long a build waits at its end for results that are still being sent."""


@dataclass(frozen=True)
class Trust:
    """Which entries of the action cache are believed."""

    toolchain: str
    """Digest of everything that decides about an action's result and that Bazel does not see."""
    secret: bytes
    """What the entries written here are sealed with."""
    listed: Mapping[str, str] = field(default_factory=dict)
    """Entries that a trusted builder's manifest lists: action = SHA-256 of its entry."""

    def opened(self, action: str, entry: bytes) -> bytes | None:
        """Return an entry without its seal if it is to be believed, else None."""
        payload, given = seal.remove(entry)
        if seal.holds(payload, given, self.secret, self.toolchain, action):
            return payload
        known = self.listed.get(action)
        return (
            payload
            if known and known == hashlib.sha256(payload).hexdigest()
            else None
        )

    def sealed(self, action: str, payload: bytes) -> bytes:
        """Return an entry as it is stored."""
        return seal.add(payload, self.secret, self.toolchain, action)

    def key(self, action: str) -> str:
        """Return an action's name on a server, where toolchains have no folders of their own."""
        return hashlib.sha256(f"{self.toolchain}:{action}".encode()).hexdigest()


class BuildCache:
    """The cache of one build: a directory of this host, and perhaps a server behind it."""

    def __init__(
        self,
        directory: CacheDirectory,
        trust: Trust,
        server: CacheServer | None = None,
        *,
        writes: bool = True,
    ) -> None:
        """Use a directory and a server; without `writes` nothing is sent to the server."""
        self.tally = Tally()
        self._directory = directory
        self._trust = trust
        self._server = server
        self._written: dict[str, str] = {}
        self._damaged: set[str] = set()
        """Blobs that the server has with other content; they are sent again."""
        self._uploads: queue.Queue[tuple[str, bytes] | None] = queue.Queue(
            UPLOADS
        )
        self._uploader = threading.Thread(target=self._upload_all, daemon=True)
        self._uploading = server is not None and writes
        if self._uploading:
            self._uploader.start()

    @property
    def written(self) -> Mapping[str, str]:
        """Entries of this build, found or added: action = SHA-256 of its entry without a seal."""
        return self._written

    def lookup(self, action: str) -> bytes | None:
        """Return the result of an action whose files are all here and verified; None is a miss."""
        self.tally.count("lookups")
        deadline = time.monotonic() + LOOKUP_SECONDS
        # The directory first: it costs no round trip, and the server's entries end up there too.
        for find in (self._own_entry, self._served_entry):
            payload = self._found(find, action, deadline)
            if payload is not None:
                self._written[action] = hashlib.sha256(payload).hexdigest()
                self.tally.count("hits")
                return payload
        return None

    def _found(self, find: "_Find", action: str, deadline: float) -> bytes | None:
        """Return an entry with all its files in place; whatever goes wrong makes it None."""
        try:
            payload = find(action)
            if payload is not None:
                self._bring(action_result.read(payload), deadline)
        except (
            _MissError,
            ServerFaultError,
            MalformedMessageError,
            OSError,
        ) as fault:
            self.tally.fault(_reason(fault))
            # Without the entry, Bazel runs the action and the new result replaces it.
            self._directory.drop_entry(self._trust.toolchain, action)
            return None
        return payload

    def blob(self, sha256: str) -> BinaryIO | None:
        """Open a verified blob."""
        if sha256 == EMPTY:
            # Some Bazels send the empty blob, some do not, and some ask for it all the same.
            return io.BytesIO()
        return self._directory.opened(sha256)

    def offer(self, action: str, payload: bytes) -> None:
        """Take the result of an action that Bazel ran, if all its files came before it."""
        try:
            result = action_result.read(payload)
            missing = [
                blob
                for blob in self._all_blobs(result)
                if not self._holds(blob.sha256)
            ]
            # An entry without its files would be a miss for each later build.
            if missing:
                self.tally.fault("a result came without its files")
                return
            entry = self._trust.sealed(action, payload)
            self._directory.keep_entry(self._trust.toolchain, action, entry)
        except (OSError, _MissError, MalformedMessageError) as fault:
            self.tally.fault(_reason(fault))
        else:
            self._written[action] = hashlib.sha256(payload).hexdigest()
            self.tally.count("stored")
            self._send_later(action, entry)

    def offer_blob(
        self, sha256: str, size: int, read: Callable[[int], bytes]
    ) -> None:
        """Take a blob that Bazel sends; one with another digest is not stored."""
        if self._directory.holds(sha256):
            return
        try:
            if not self._directory.keep_blob(sha256, size, read):
                self.tally.fault("Bazel sent a file that changed meanwhile")
        except OSError as fault:
            self.tally.fault(_reason(fault))

    def close(self) -> None:
        """Wait a while for what is still being sent, then close the connections."""
        if self._uploading:
            # None is the end of the queue, after everything that still waits in it.
            self._uploads.put(None)
            self._uploader.join(DRAIN_SECONDS)
            if self._uploader.is_alive():
                self.tally.fault(
                    "the server: it took too long to store everything"
                )
        if self._server:
            self._server.close()

    def _own_entry(self, action: str) -> bytes | None:
        """Return the entry in the directory."""
        entry = self._directory.entry(self._trust.toolchain, action)
        return None if entry is None else self._believed(action, entry)

    def _served_entry(self, action: str) -> bytes | None:
        """Return the server's entry, which the directory keeps from now on."""
        entry = (
            self._server.entry(self._trust.key(action)) if self._server else None
        )
        if entry is None:
            return None
        payload = self._believed(action, entry)
        # A full disk does not make a hit of the server's a miss.
        try:
            self._directory.keep_entry(self._trust.toolchain, action, entry)
        except OSError as fault:
            self.tally.fault(_reason(fault))
        return payload

    def _believed(self, action: str, entry: bytes) -> bytes:
        payload = self._trust.opened(action, entry)
        if payload is None:
            raise _MissError("an entry was not written by a trusted builder")
        return payload

    def _bring(self, result: ActionResult, deadline: float) -> None:
        """Get all files of a result into the directory, verified; raise what makes it a miss."""
        for blob in result.blobs:
            self._bring_blob(blob, deadline)
        for tree in result.trees:
            for blob in action_result.tree_blobs(
                self._bring_blob(tree, deadline).read_bytes()
            ):
                self._bring_blob(blob, deadline)

    def _bring_blob(self, blob: Blob, deadline: float) -> Path:
        """Return the verified file of a blob."""
        if blob.sha256 == EMPTY:
            return Path("/dev/null")
        # A damaged file of ours may be intact on the server.
        try:
            path = self._directory.blob(blob)
        except DamagedBlobError as fault:
            self.tally.fault(_reason(fault))
            path = None
        if path is None and self._server:
            self._download(blob, deadline)
            path = self._directory.blob(blob)
        if path is None:
            raise _MissError("a file of a result is gone")
        return path

    def _download(self, blob: Blob, deadline: float) -> None:
        """Get a blob from the server. Raises _MissError, ServerFaultError."""
        if self._server is None or time.monotonic() > deadline:
            raise _MissError("the server: too slow")
        try:
            with self._server.blob(blob.sha256, blob.size) as stream:
                if stream is None:
                    return
                if not self._directory.keep_blob(
                    blob.sha256, blob.size, stream.read
                ):
                    # The server has a file of that name, so `has` alone would spare the upload.
                    self._damaged.add(blob.sha256)
                    raise ServerFaultError("it sent a file with a wrong checksum")
        except OSError as fault:
            raise _MissError(_reason(fault)) from fault

    def _holds(self, sha256: str) -> bool:
        return self._directory.holds(sha256)

    def _all_blobs(self, result: ActionResult) -> Iterable[Blob]:
        """Yield every file of a result that was just made."""
        yield from (*result.blobs, *result.trees)
        for tree in result.trees:
            stream = self._directory.opened(tree.sha256)
            if stream is None:
                raise _MissError("a result came without its files")
            with stream:
                yield from action_result.tree_blobs(stream.read())

    def _send_later(self, action: str, entry: bytes) -> None:
        """Let the server have a result; the build does not wait for it."""
        if self._uploading:
            try:
                self._uploads.put_nowait((action, entry))
            except queue.Full:
                self.tally.fault("the server: too slow to store everything")

    def _upload_all(self) -> None:
        """Send results one after the other, files first: an entry never precedes what it lists."""
        while (waiting := self._uploads.get()) is not None:
            try:
                self._upload(*waiting)
            # What cannot be sent must not end this thread: the results behind it wait for it.
            except (
                DamagedBlobError,
                ServerFaultError,
                OSError,
                MalformedMessageError,
                _MissError,
            ) as fault:
                self.tally.fault(_reason(fault))

    def _upload(self, action: str, entry: bytes) -> None:
        if self._server is None or self._server.given_up:
            return
        for blob in self._all_blobs(action_result.read(seal.remove(entry)[0])):
            lacking = blob.sha256 in self._damaged or not self._server.has(
                blob.sha256
            )
            if blob.sha256 != EMPTY and lacking:
                path = self._directory.blob(blob)
                if path is None:
                    raise _MissError("a file was removed before it was sent")
                self._server.send("cas", blob.sha256, path)
        self._server.send("ac", self._trust.key(action), entry)


class _MissError(Exception):
    """An entry cannot be used; the text says why."""


def _reason(fault: Exception) -> str:
    """Say in a few words what kept something from being stored."""
    if isinstance(fault, CacheFullError):
        return "the cache is full and everything in it is in use"
    if isinstance(fault, OSError):
        return f"the cache's directory: {fault.strerror or type(fault).__name__}"
    if isinstance(fault, DamagedBlobError):
        return "a file had other content than its name says"
    if isinstance(fault, MalformedMessageError):
        return "an entry could not be read"
    return (
        f"the server: {fault}"
        if isinstance(fault, ServerFaultError)
        else str(fault)
    )


_Find = Callable[[str], bytes | None]
