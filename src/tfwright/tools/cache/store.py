"""The cache's directory: blobs and entries as files, the least recently used removed first.

``cas/ab/<sha256>`` holds blobs, ``ac/<toolchain>/ab/<action>`` sealed entries. A file's time of
modification is when it was last used. Several builds share a directory without a lock: files appear
whole by a rename, and one that vanishes is a miss. Files are read-only: builds may have links to
them.

A blob is compared with its name before it is used. A file that is written to, replaced or linked
gets another state, so that the record of a build spares the next one the checksums of files that
nothing has touched since. The record is sealed with the host's secret.
"""

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tfwright.errors import HostError
from tfwright.tools import files, json_text, trees
from tfwright.tools.cache import messages
from tfwright.tools.cache.messages import ActionResult, Blob, MalformedMessageError

SEAL_FIELD = 2016
"""Number of the field that holds a seal; the API's own end at 20."""
SEAL_SIZE = 32
"""Bytes of a secret and of a seal."""
SEAL_LENGTH = len(messages.encode_field(SEAL_FIELD, bytes(SEAL_SIZE)))
"""Bytes of the field."""


@dataclass(frozen=True)
class Seal:
    """What the entries of one toolchain are sealed with."""

    secret: bytes
    toolchain: str
    """Digest of everything that decides about an action's result and that Bazel does not see."""

    def add(self, action: str, payload: bytes) -> bytes:
        """Return an entry as it is stored."""
        # Toolchain and action are hex of fixed length: no two triples give the same bytes.
        head = f"{self.toolchain}:{action}:".encode()
        mac = hmac.digest(self.secret, head + payload, hashlib.sha256)
        return payload + messages.encode_field(SEAL_FIELD, mac)

    def unseal(self, action: str, entry: bytes) -> bytes | None:
        """Return an entry without its seal; None if it was not sealed for this action."""
        payload = entry[:-SEAL_LENGTH]
        good = hmac.compare_digest(entry, self.add(action, payload))
        return payload if good else None

    def signature(self, text: bytes) -> bytes:
        """Return what proves that this host wrote a text about the toolchain, in hex."""
        return hmac.digest(self.secret, b"verified:" + text, hashlib.sha256).hex().encode()

    def key(self, name: str) -> str:
        """Return a name on a server, where toolchains have no folders of their own."""
        return hashlib.sha256(f"{self.toolchain}:{name}".encode()).hexdigest()


def read_secret(path: Path) -> bytes:
    """Return the secret of a file; a file that does not exist is made, readable by its owner only.

    Raises HostError if it cannot be read or made, or is too short to protect anything.
    """
    try:
        if not path.exists():
            files.write(path, secrets.token_hex(SEAL_SIZE), 0o600)
        content = path.read_bytes().strip()
    except OSError as fault:
        raise HostError(
            f"The build cache's secret {path} cannot be read or made: {fault.strerror}",
            remedy="Check the path and its permissions.",
        ) from fault
    if len(content) < SEAL_SIZE:
        raise HostError(
            f"The build cache's secret {path} has {len(content)} bytes; {SEAL_SIZE} is the least",
            remedy="Delete it: the next build makes one that is long enough.",
        )
    return content


GIB = 1 << 30
FILLED = 0.9
"""Share of the limit that is left after the oldest files were removed."""
YOUNG_SECONDS = 600
"""What was used within this time is not removed: a build may be about to ask for it."""
SETTLED_SECONDS = 2
"""How long ago a file was modified before its state counts; file systems' clocks are coarse."""
LARGEST_ENTRY = 16 << 20
"""Bytes of an entry of the action cache; larger ones are not read."""
EMPTY = hashlib.sha256().hexdigest()
"""The blob that no Bazel needs to store."""
READ_ONLY = 0o400
"""Mode of every file: whoever writes to a link of one by mistake is refused."""


class MissError(Exception):
    """An entry cannot be used; the text says why."""


FAULTS = (MissError, MalformedMessageError, OSError)
"""What makes an entry a miss."""


def reason(fault: Exception) -> str:
    """Say in a few words what kept an entry from being used or stored."""
    if isinstance(fault, OSError):
        return f"the cache's directory: {fault.strerror or type(fault).__name__}"
    if isinstance(fault, MalformedMessageError):
        return "an entry could not be read"
    return str(fault)


class FileState(NamedTuple):
    """A file as the file system describes it."""

    inode: int
    size: int
    """Bytes."""
    modified: int
    """Time of the last change of content, in nanoseconds."""
    changed: int
    """Time of the last change of content, attributes or links, in nanoseconds."""

    @classmethod
    def of(cls, found: os.stat_result) -> "FileState":
        """Return what stat(2) says that matters here."""
        return cls(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    def has_content_of(self, earlier: "FileState") -> bool:
        """Say whether at most links and attributes have changed since an earlier state."""
        return self[:3] == earlier[:3]


class CacheStore:
    """What this host keeps of the cache."""

    def __init__(self, root: Path, limit: int) -> None:
        """Open the directory, made if it is missing; `limit` is in bytes. Raises OSError."""
        self.root = root
        self.verified: dict[str, FileState] = {}
        """Blobs whose content was compared with their name, as they were then."""
        self.incoming = root / "incoming"
        """Where files arrive before they get their place."""
        self._limit = limit
        self._lock = threading.Lock()
        self._kept = (root / "cas", root / "ac")
        for folder in (self.incoming, *self._kept):
            folder.mkdir(parents=True, exist_ok=True)
        self.held = sum(map(trees.size, self._kept))
        """Bytes of all files, as counted when last looked at."""
        self._full_until = 0.0

    def blob_path(self, sha256: str) -> Path:
        """Return where a blob lies, or would."""
        return Path(f"{self.root}/cas/{sha256[:2]}/{sha256}")

    def entry_path(self, toolchain: str, action: str) -> Path:
        """Return where an entry lies, or would."""
        return Path(f"{self.root}/ac/{toolchain}/{action[:2]}/{action}")

    def verify(self, blob: Blob) -> None:
        """Compare a blob with its name, unless nothing has touched it since that was done.

        Raises MissError if it is gone, or has other content: then it is removed.
        """
        path = self.blob_path(blob.sha256)
        try:
            if self.verified.get(blob.sha256) == FileState.of(path.lstat()):
                return
            good = self.compare(path, blob.sha256, blob.size)
        except OSError as fault:
            raise MissError("a file of a result is gone") from fault
        if not good:
            path.unlink(missing_ok=True)
            raise MissError("a file had other content than its name says")

    def compare(self, path: Path, sha256: str, size: int | None = None) -> bool:
        """Say whether a blob, or a link to it, has the content of its name. Raises OSError."""
        self.verified.pop(sha256, None)
        with path.open("rb", buffering=0) as stream:
            descriptor = stream.fileno()
            found = os.fstat(descriptor)
            # Before the content is read: from now on every write gives another time.
            settled = min(found.st_mtime_ns, _settled_time())
            if settled != found.st_mtime_ns:
                os.utime(descriptor, ns=(found.st_atime_ns, settled))
            state = FileState.of(os.fstat(descriptor))
            expected = size is None or state.size == size
            if not expected or hashlib.file_digest(stream, "sha256").hexdigest() != sha256:
                return False
        self.verified[sha256] = state
        return True

    def files_of(self, result: ActionResult) -> Iterator[Blob]:
        """Yield every file of a result; what lists the files of a directory before it is read.

        Raises MissError, MalformedMessageError.
        """
        yield from (*result.blobs, *result.trees)
        for tree in (tree for tree in result.trees if tree.sha256 != EMPTY):
            try:
                content = files.content(self.blob_path(tree.sha256))
            except OSError as fault:
                raise MissError("a file of a result is gone") from fault
            yield from messages.tree_blobs(content)

    def refresh(self, sha256: str, *, used: bool) -> None:
        """Take note that links to a verified blob were changed, and whether it was used."""
        before = self.verified.pop(sha256, None)
        path = self.blob_path(sha256)
        with contextlib.suppress(OSError):
            state = FileState.of(path.lstat())
            if before is None or not state.has_content_of(before):
                return
            if used:
                os.utime(path, ns=(time.time_ns(), _settled_time()))
                state = FileState.of(path.lstat())
            self.verified[sha256] = state

    def adopt(self, file: Path, sha256: str) -> bool:
        """Move a file of this disk in as a blob; say whether it has the digest and was taken.

        Raises OSError.
        """
        size = file.stat().st_size
        self._make_room(size)
        # Under a name that no other process knows, before its content is compared.
        with files.scratch_directory(self.incoming) as scratch:
            temporary = file.rename(scratch / sha256)
            good = files.sha256(temporary) == sha256
            if good:
                path = self.blob_path(sha256)
                self._place(temporary, path, size)
                self.verified[sha256] = FileState.of(path.lstat())
        return good

    def entry(self, toolchain: str, action: str) -> bytes:
        """Return a sealed entry of the action cache. Raises OSError if there is none."""
        with self.entry_path(toolchain, action).open("rb") as stream:
            return stream.read(LARGEST_ENTRY)

    def keep_entry(self, toolchain: str, action: str, entry: bytes) -> None:
        """Store a sealed entry. Raises OSError when the disk refuses."""
        self._make_room(len(entry))
        with files.scratch_directory(self.incoming) as scratch:
            temporary = scratch / action
            temporary.write_bytes(entry)
            self._place(temporary, self.entry_path(toolchain, action), len(entry))

    def use_entry(self, toolchain: str, action: str) -> None:
        """Let an entry count as used just now."""
        with contextlib.suppress(OSError):
            os.utime(self.entry_path(toolchain, action))

    def drop_entry(self, toolchain: str, action: str) -> None:
        """Remove an entry that cannot be used."""
        with contextlib.suppress(OSError):
            self.entry_path(toolchain, action).unlink(missing_ok=True)

    def actions(self, toolchain: str) -> list[str]:
        """Return the actions that have an entry."""
        return [path.name for path, _ in trees.files_below(self.root / "ac" / toolchain)]

    def toolchains(self) -> dict[str, int]:
        """Return how many entries each toolchain has."""
        folders = filter(Path.is_dir, (self.root / "ac").iterdir())
        return {folder.name: sum(1 for _ in folder.glob("*/*")) for folder in sorted(folders)}

    def load_verified(self, seal: Seal) -> None:
        """Take over what the last build with a toolchain left verified, if that was this host."""
        try:
            signature, _, text = files.content(self._verified_file(seal)).partition(b"\n")
            if signature == seal.signature(text):
                known = json_text.parse(text)
                self.verified.update({name: FileState(*state) for name, state in known.items()})
        except (OSError, ValueError, TypeError, AttributeError):
            return

    def save_verified(self, seal: Seal, names: Iterable[str]) -> None:
        """Write down which of these blobs are verified."""
        known = {name: self.verified[name] for name in names if name in self.verified}
        text = json.dumps(known, separators=(",", ":")).encode()
        # The record only saves time.
        with contextlib.suppress(OSError):
            files.write(self._verified_file(seal), seal.signature(text) + b"\n" + text)

    def _verified_file(self, seal: Seal) -> Path:
        # Hosts with other secrets may share the directory.
        whose = hashlib.sha256(seal.secret).hexdigest()[:16]
        return self.root / "verified" / f"{seal.toolchain}-{whose}.json"

    def _place(self, temporary: Path, path: Path, size: int) -> None:
        """Give a whole file its place."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.chmod(READ_ONLY)
        os.utime(temporary, ns=(time.time_ns(), _settled_time()))
        # No fsync: what a power cut leaves half written fails its digest and is a miss.
        temporary.replace(path)
        with self._lock:
            self.held += size

    def _make_room(self, size: int) -> None:
        """Remove the least recently used files if `size` more bytes exceed the limit.

        Raises OSError where everything is in use.
        """
        with self._lock:
            if self.held + size <= self._limit:
                return
            full = OSError(0, "it is full, and everything in it is in use")
            if time.time() < self._full_until:
                raise full
            # Count what other builds wrote as well.
            self.held = remove_oldest(self._kept, self._limit * FILLED - size)
            if self.held + size > self._limit:
                # Looking through a large cache again for every blob would slow the build.
                self._full_until = time.time() + YOUNG_SECONDS / 10
                raise full


def remove_oldest(folders: Iterable[Path], most: float) -> int:
    """Remove what was used longest ago below folders until `most` bytes are left; return those.

    The time of modification is when a file was last used. An entry and its blobs are separate
    files. A missing one counts as a miss, so that any of them may go, but what was used just now
    belongs to a build that runs.
    """
    found = [each for folder in folders for each in trees.files_below(folder)]
    held = sum(state.st_size for _, state in found)
    young = time.time() - YOUNG_SECONDS
    for path, state in sorted(found, key=lambda each: each[1].st_mtime):
        if held <= most or state.st_mtime > young:
            break
        path.unlink(missing_ok=True)
        held -= state.st_size
    return held


def _settled_time() -> int:
    """Return a time of modification that no later write can give a file, in nanoseconds.

    Two writes within one tick of the file system's clock leave the same time, and so would a write
    right after the checksum. git calls such files racily clean.
    """
    return (int(time.time()) - SETTLED_SECONDS) * 1_000_000_000
