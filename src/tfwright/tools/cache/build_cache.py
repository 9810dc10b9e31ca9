"""What a build takes from the cache: hits whose every byte is verified; all else is a miss."""

import hashlib
import io
import math
import os
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
from tfwright.tools.cache.store import EMPTY, CacheDirectory, CacheFullError, DamagedBlobError
from tfwright.tools.cache.tally import Tally
from tfwright.tools.cache.verified import FileState, VerifiedEntry
from tfwright.tools.cache.wire import MalformedMessageError

LOOKUP_SECONDS = 30.0
"""How long a lookup may take. Bazel itself gives up after 60, and before 0.18.1 fails then."""
UPLOADS = 4096
"""Results that wait to be sent to the server; further ones are only kept here."""
DRAIN_SECONDS = 60.0
"""How long a build waits at its end for results that are still being sent."""


class MissError(Exception):
    """An entry cannot be used; the text says why."""


class UnbelievedError(MissError):
    """An entry was not written by a builder that this host trusts."""


FAULTS = (MissError, ServerFaultError, MalformedMessageError, OSError)
"""What makes an entry a miss."""


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
        payload, _ = seal.remove(entry)
        if self.sealed_here(action, entry) or self.lists(action, _sha256(payload)):
            return payload
        return None

    def sealed_here(self, action: str, entry: bytes) -> bool:
        """Say whether this host's secret sealed an entry."""
        payload, given = seal.remove(entry)
        return seal.holds(payload, given, self.secret, self.toolchain, action)

    def lists(self, action: str, payload: str) -> bool:
        """Say whether a trusted builder lists an entry, by the SHA-256 of what it holds."""
        return self.listed.get(action) == payload

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
        self.directory = directory
        self.trust = trust
        self._server = server
        self._written: dict[str, str] = {}
        self._damaged: set[str] = set()
        """Blobs that the server has with other content; they are sent again."""
        self._uploads: queue.Queue[tuple[str, bytes] | None] = queue.Queue(UPLOADS)
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
                self.hit(action, _sha256(payload))
                return payload
        return None

    def hit(self, action: str, payload: str) -> None:
        """Count an entry that a build took, by the SHA-256 of what it holds."""
        self._written[action] = payload
        self.tally.count("hits")

    def verified(self, action: str) -> VerifiedEntry | None:
        """Return the directory's entry of an action if it is believed and its files are verified.

        Raises one of FAULTS if there is an entry that cannot be used.
        """
        path = self.directory.entry_path(self.trust.toolchain, action)
        state = FileState.of(os.lstat(path))
        entry = self.directory.entry(self.trust.toolchain, action)
        if entry is None:
            return None
        payload = self._believed(action, entry)
        blobs = self._bring(action_result.read(payload), math.inf)
        ours = self.trust.sealed_here(action, entry)
        return VerifiedEntry(state, _sha256(payload), tuple(blobs), ours)

    def _found(self, find: "_Find", action: str, deadline: float) -> bytes | None:
        """Return an entry with all its files in place; whatever goes wrong makes it None."""
        try:
            payload = find(action)
            if payload is not None:
                self._use(action, self._bring(action_result.read(payload), deadline))
        except FAULTS as fault:
            self.tally.fault(reason(fault))
            # Without the entry, Bazel runs the action and the new result replaces it.
            self.directory.drop_entry(self.trust.toolchain, action)
            return None
        return payload

    def _use(self, action: str, blobs: Iterable[str]) -> None:
        """Let an entry and its files be the last that are removed."""
        self.directory.use_entry(self.trust.toolchain, action)
        for sha256 in blobs:
            self.directory.refresh(sha256, used=True)

    def blob(self, sha256: str) -> BinaryIO | None:
        """Open a verified blob."""
        if sha256 == EMPTY:
            # Some Bazels send the empty blob, some do not, and some ask for it all the same.
            return io.BytesIO()
        return self.directory.opened(sha256)

    def offer(self, action: str, payload: bytes) -> None:
        """Take the result of an action that Bazel ran, if all its files came before it."""
        try:
            result = action_result.read(payload)
            missing = [blob for blob in self.files_of(result) if not self._holds(blob.sha256)]
            # An entry without its files would be a miss for each later build.
            if missing:
                self.tally.fault("a result came without its files")
                return
            entry = self.trust.sealed(action, payload)
            self.directory.keep_entry(self.trust.toolchain, action, entry)
        except (OSError, MissError, MalformedMessageError) as fault:
            self.tally.fault(reason(fault))
        else:
            self._written[action] = _sha256(payload)
            self.tally.count("stored")
            self._send_later(action, entry)

    def offer_blob(self, sha256: str, size: int, read: Callable[[int], bytes]) -> None:
        """Take a blob that Bazel sends; one with another digest is not stored."""
        if self.directory.holds(sha256):
            return
        try:
            if not self.directory.keep_blob(sha256, size, read):
                self.tally.fault("Bazel sent a file that changed meanwhile")
        except OSError as fault:
            self.tally.fault(reason(fault))

    def files_of(self, result: ActionResult) -> Iterable[Blob]:
        """Yield every file of a result that was just made.

        What lists the files of a directory is yielded before it is read. Raises MissError if it is
        not in the cache by then, MalformedMessageError.
        """
        yield from (*result.blobs, *result.trees)
        for tree in result.trees:
            stream = self.directory.opened(tree.sha256)
            if stream is None:
                raise MissError("a result came without its files")
            with stream:
                yield from action_result.tree_blobs(stream.read())

    def close(self) -> None:
        """Wait a while for what is still being sent, then close the connections."""
        if self._uploading:
            # None is the end of the queue, after everything that still waits in it.
            self._uploads.put(None)
            self._uploader.join(DRAIN_SECONDS)
            if self._uploader.is_alive():
                self.tally.fault("the server: it took too long to store everything")
        if self._server:
            self._server.close()

    def _own_entry(self, action: str) -> bytes | None:
        """Return the entry in the directory."""
        entry = self.directory.entry(self.trust.toolchain, action)
        return None if entry is None else self._believed(action, entry)

    def _served_entry(self, action: str) -> bytes | None:
        """Return the server's entry, which the directory keeps from now on."""
        entry = self._server.entry(self.trust.key(action)) if self._server else None
        if entry is None:
            return None
        payload = self._believed(action, entry)
        # A full disk does not make a hit of the server's a miss.
        try:
            self.directory.keep_entry(self.trust.toolchain, action, entry)
        except OSError as fault:
            self.tally.fault(reason(fault))
        return payload

    def _believed(self, action: str, entry: bytes) -> bytes:
        payload = self.trust.opened(action, entry)
        if payload is None:
            raise UnbelievedError("an entry was not written by a trusted builder")
        return payload

    def _bring(self, result: ActionResult, deadline: float) -> list[str]:
        """Get all files of a result into the directory, verified; return their digests.

        Raises what makes it a miss.
        """
        blobs = [*result.blobs, *result.trees]
        for tree in result.trees:
            path = self._bring_blob(tree, deadline)
            blobs += action_result.tree_blobs(path.read_bytes())
        for blob in blobs:
            self._bring_blob(blob, deadline)
        return [blob.sha256 for blob in blobs]

    def _bring_blob(self, blob: Blob, deadline: float) -> Path:
        """Return the verified file of a blob."""
        if blob.sha256 == EMPTY:
            return Path("/dev/null")
        # A damaged file of ours may be intact on the server.
        try:
            path = self.directory.blob(blob)
        except DamagedBlobError as fault:
            self.tally.fault(reason(fault))
            path = None
        if path is None and self._server:
            self._download(blob, deadline)
            path = self.directory.blob(blob)
        if path is None:
            raise MissError("a file of a result is gone")
        return path

    def _download(self, blob: Blob, deadline: float) -> None:
        """Get a blob from the server. Raises MissError, ServerFaultError."""
        if self._server is None or time.monotonic() > deadline:
            raise MissError("the server: too slow")
        try:
            with self._server.blob(blob.sha256, blob.size) as stream:
                if stream is None:
                    return
                if not self.directory.keep_blob(blob.sha256, blob.size, stream.read):
                    # The server has a file of that name, so `has` alone would spare the upload.
                    self._damaged.add(blob.sha256)
                    raise ServerFaultError("it sent a file with a wrong checksum")
        except OSError as fault:
            raise MissError(reason(fault)) from fault

    def _holds(self, sha256: str) -> bool:
        return self.directory.holds(sha256)

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
                MissError,
            ) as fault:
                self.tally.fault(reason(fault))

    def _upload(self, action: str, entry: bytes) -> None:
        if self._server is None or self._server.given_up:
            return
        for blob in self.files_of(action_result.read(seal.remove(entry)[0])):
            lacking = blob.sha256 in self._damaged or not self._server.has(blob.sha256)
            if blob.sha256 != EMPTY and lacking:
                path = self.directory.blob(blob)
                if path is None:
                    raise MissError("a file was removed before it was sent")
                self._server.send("cas", blob.sha256, path)
        self._server.send("ac", self.trust.key(action), entry)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def reason(fault: Exception) -> str:
    """Say in a few words what kept something from being stored."""
    if isinstance(fault, CacheFullError):
        return "the cache is full and everything in it is in use"
    if isinstance(fault, OSError):
        return f"the cache's directory: {fault.strerror or type(fault).__name__}"
    if isinstance(fault, DamagedBlobError):
        return "a file had other content than its name says"
    if isinstance(fault, MalformedMessageError):
        return "an entry could not be read"
    return f"the server: {fault}" if isinstance(fault, ServerFaultError) else str(fault)


_Find = Callable[[str], bytes | None]
