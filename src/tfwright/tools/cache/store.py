"""The cache's directory: blobs and entries as files, the least recently used removed first.

``cas/ab/<sha256>`` holds blobs, ``ac/<toolchain>/ab/<action>`` sealed entries. A file's time of
modification is when it was last used. Several builds share a directory without a lock: files appear
whole by a rename, and one that vanishes is a miss. Files are read-only: builds may have links to
them.
"""

import contextlib
import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tfwright.tools import files
from tfwright.tools.cache.action_result import Blob
from tfwright.tools.cache.verified import FileState, settled_time

PIECE = 1 << 20
"""Bytes that are read or written at once."""
FILLED = 0.9
"""Share of the limit that is left after the oldest files were removed."""
YOUNG_SECONDS = 600
"""What was used within this time is not removed: a build may be about to ask for it."""
LARGEST_ENTRY = 16 << 20
"""Bytes of an entry of the action cache; larger ones are not read."""
EMPTY = hashlib.sha256().hexdigest()
"""The blob that no Bazel needs to upload."""
READ_ONLY = 0o400
"""Mode of every file: whoever writes to a link of one by mistake is refused."""


class CachedFile(NamedTuple):
    """A file of the cache."""

    used: float
    """When it was last used, in seconds since 1970: the cache sets the time of modification."""
    size: int
    """Bytes."""
    path: str


class CacheDirectory:
    """What this host keeps of the cache."""

    def __init__(self, root: Path, limit: int) -> None:
        """Open the directory, made if it is missing; `limit` is in bytes. Raises OSError."""
        self.root = root
        self.verified: dict[str, FileState] = {}
        """Blobs whose content was compared with their name, as they were then."""
        self._limit = limit
        self._lock = threading.Lock()
        for folder in (self._incoming, root / "cas", root / "ac"):
            folder.mkdir(parents=True, exist_ok=True)
        self._held = sum(file.size for file in self._files())
        self._full_until = 0.0

    def blob(self, blob: Blob) -> Path | None:
        """Return the file of a blob whose content is verified; None if there is none.

        A file with other content than its name says is removed.
        """
        path = Path(self.blob_path(blob.sha256))
        try:
            good = self.unchanged(blob.sha256) or self._compare(path, blob)
        except OSError:
            return None
        if not good:
            path.unlink(missing_ok=True)
            raise DamagedBlobError(blob.sha256)
        return path

    def unchanged(self, sha256: str) -> bool:
        """Say whether a blob is as it was when its content was verified."""
        known = self.verified.get(sha256)
        try:
            return known == FileState.of(os.lstat(self.blob_path(sha256)))
        except OSError:
            return False

    def refresh(self, sha256: str, *, used: bool) -> None:
        """Take note that links to a verified blob were changed, or that it was used just now."""
        state = self.verified.pop(sha256, None)
        if state is None:
            return
        try:
            now = refreshed(self.blob_path(sha256), state, used=used)
        except OSError:
            return
        if now:
            self.verified[sha256] = now

    def holds(self, sha256: str) -> bool:
        """Say whether a blob is there; its content is not read."""
        return sha256 == EMPTY or Path(self.blob_path(sha256)).is_file()

    def opened(self, sha256: str) -> BinaryIO | None:
        """Open a blob; None if there is none, or its content is not what its name says."""
        try:
            path = Path(self.blob_path(sha256))
            stream: BinaryIO = path.open("rb", buffering=0)
        except OSError:
            return None
        if self.verified.get(sha256) == FileState.of(os.fstat(stream.fileno())):
            return stream
        # Another build used the file since it was verified, or something wrote to it: only its
        # content can tell.
        if _sha256(stream) == sha256:
            stream.seek(0)
            return stream
        stream.close()
        return None

    def keep_blob(self, sha256: str, size: int, read: Callable[[int], bytes]) -> bool:
        """Store `size` bytes that `read` yields; say whether they have the digest and were stored.

        Raises OSError when the disk refuses, and whatever `read` raises.
        """
        with self._room_for(size) as (temporary, stream):
            with stream:
                good = _copy(read, size, stream) == sha256
            if good:
                self._keep_verified(temporary, sha256, size)
        return good

    @contextlib.contextmanager
    def _room_for(self, size: int) -> Iterator[tuple[Path, BinaryIO]]:
        """Give a new file to fill and to close; it is removed unless it gets its place."""
        self._make_room(size)
        handle, name = tempfile.mkstemp(dir=self._incoming)
        try:
            with os.fdopen(handle, "wb") as stream:
                yield Path(name), stream
        finally:
            Path(name).unlink(missing_ok=True)

    def entry(self, toolchain: str, action: str) -> bytes | None:
        """Return a sealed entry of the action cache; None if there is none."""
        path = self.entry_path(toolchain, action)
        try:
            with open(path, "rb", opener=_without_access_time) as stream:
                return stream.read(LARGEST_ENTRY)
        except OSError:
            return None

    def keep_entry(self, toolchain: str, action: str, entry: bytes) -> None:
        """Store a sealed entry. Raises OSError when the disk refuses."""
        with self._room_for(len(entry)) as (temporary, stream):
            with stream:
                stream.write(entry)
            path = Path(self.entry_path(toolchain, action))
            self._settle(temporary, path, len(entry))

    def adopt(self, file: Path, sha256: str) -> bool:
        """Move a file of this disk in as a blob; say whether it has the digest and was taken.

        Raises OSError.
        """
        size = file.stat().st_size
        self._make_room(size)
        # Under a name that no other process knows, before its content is compared.
        with tempfile.TemporaryDirectory(dir=self._incoming) as room:
            temporary = file.rename(Path(room, sha256))
            good = files.sha256(temporary) == sha256
            if good:
                self._keep_verified(temporary, sha256, size)
        return good

    def use_entry(self, toolchain: str, action: str) -> None:
        """Let an entry count as used just now."""
        with contextlib.suppress(OSError):
            now = (time.time_ns(), settled_time())
            os.utime(self.entry_path(toolchain, action), ns=now)

    def drop_entry(self, toolchain: str, action: str) -> None:
        """Remove an entry that cannot be used."""
        with contextlib.suppress(OSError):
            Path(self.entry_path(toolchain, action)).unlink(missing_ok=True)

    def actions(self, toolchain: str) -> list[str]:
        """Return the actions that have an entry."""
        entries = files_below(f"{self.root}/ac/{toolchain}")
        return [entry.path.rpartition("/")[2] for entry in entries]

    def toolchains(self) -> dict[str, int]:
        """Return how many entries each toolchain has."""
        folders = filter(Path.is_dir, (self.root / "ac").iterdir())
        return {folder.name: sum(1 for _ in folder.glob("*/*")) for folder in sorted(folders)}

    def held(self) -> int:
        """Return the bytes that all files take, as counted when last looked at."""
        return self._held

    # Strings: a build asks for tens of thousands, and a Path takes longer than the file's state.

    def blob_path(self, sha256: str) -> str:
        """Return where a blob lies, or would."""
        return f"{self.root}/cas/{sha256[:2]}/{sha256}"

    def entry_path(self, toolchain: str, action: str) -> str:
        """Return where an entry lies, or would."""
        return f"{self.root}/ac/{toolchain}/{action[:2]}/{action}"

    @property
    def _incoming(self) -> Path:
        return self.root / "incoming"

    def _settle(self, temporary: Path, path: Path, size: int) -> None:
        """Give a whole file its place."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.chmod(READ_ONLY)
        os.utime(temporary, ns=(time.time_ns(), settled_time()))
        # No fsync: what a power cut leaves half written fails its digest and is a miss.
        temporary.replace(path)
        with self._lock:
            self._held += size

    def _keep_verified(self, temporary: Path, sha256: str, size: int) -> None:
        """Give a blob its place whose content was just compared with its name."""
        path = Path(self.blob_path(sha256))
        self._settle(temporary, path, size)
        self.verified[sha256] = FileState.of(path.lstat())

    def _compare(self, path: Path, blob: Blob) -> bool:
        """Say whether a blob's file has the content that its name says. Raises OSError."""
        with path.open("rb", buffering=0) as stream:
            descriptor = stream.fileno()
            found = os.fstat(descriptor)
            # An earlier tfwright left its files writable.
            if found.st_mode & 0o222:
                os.fchmod(descriptor, READ_ONLY)
            # Before the content is read: from now on every write gives another time.
            settled = min(found.st_mtime_ns, settled_time())
            if settled != found.st_mtime_ns:
                os.utime(descriptor, ns=(found.st_atime_ns, settled))
            state = FileState.of(os.fstat(descriptor))
            if state.size != blob.size or _sha256(stream) != blob.sha256:
                return False
            self.verified[blob.sha256] = state
            return True

    def _make_room(self, size: int) -> None:
        """Remove the least recently used files if `size` more bytes exceed the limit.

        Raises CacheFullError where everything is in use.
        """
        with self._lock:
            if self._held + size <= self._limit:
                return
            if time.time() < self._full_until:
                raise CacheFullError
            self._evict(size)

    def _evict(self, size: int) -> None:
        """Count what other builds wrote as well, then remove the oldest files."""
        self._held = remove_oldest(self._files(), self._limit * FILLED - size)
        if self._held + size > self._limit:
            # Looking through a large cache again for every blob would slow the build.
            self._full_until = time.time() + YOUNG_SECONDS / 10
            raise CacheFullError

    def _files(self) -> Iterator[CachedFile]:
        """Yield all blobs and entries."""
        for kind in ("cas", "ac"):
            yield from files_below(f"{self.root}/{kind}")


def files_below(folder: str) -> Iterator[CachedFile]:
    """Yield all files below a folder of a cache, in no order."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        # A build that runs at the same time replaces files.
        with contextlib.suppress(FileNotFoundError):
            yield from _files_of(entry)


def _files_of(entry: os.DirEntry[str]) -> Iterator[CachedFile]:
    if entry.is_dir(follow_symlinks=False):
        yield from files_below(entry.path)
    elif entry.is_file(follow_symlinks=False):
        state = entry.stat(follow_symlinks=False)
        yield CachedFile(state.st_mtime, state.st_size, entry.path)


def remove_oldest(found: Iterable[CachedFile], most: float) -> int:
    """Remove what was used longest ago until `most` bytes are left; return the bytes left.

    An entry and its blobs are separate files. A missing one counts as a miss, so that any of them
    may go, but what was used just now belongs to a build that runs.
    """
    # A tuple sorts by its first field, the time of use.
    oldest_first = sorted(found)
    held = sum(file.size for file in oldest_first)
    young = time.time() - YOUNG_SECONDS
    for file in oldest_first:
        if held <= most or file.used > young:
            break
        Path(file.path).unlink(missing_ok=True)
        held -= file.size
    return held


class CacheFullError(OSError):
    """Everything in the cache is in use, and nothing more fits."""


class DamagedBlobError(Exception):
    """A file of the cache did not have the content that its name says; it is removed."""


def refreshed(path: str, known: FileState, *, used: bool) -> FileState | None:
    """Return a file's state after its links were changed; None if its content may have, too.

    With `used` it counts as just used. Raises OSError.
    """
    state = FileState.of(os.lstat(path))
    if not state.has_content_of(known):
        return None
    if used:
        os.utime(path, ns=(time.time_ns(), settled_time()))
        state = FileState.of(os.lstat(path))
    return state


def _without_access_time(path: str, flags: int) -> int:
    """Open a file of ours so that its time of access stays, by which builds see Bazel's reading."""
    return os.open(path, flags | getattr(os, "O_NOATIME", 0))


def _sha256(stream: BinaryIO) -> str:
    digest = hashlib.sha256()
    while piece := stream.read(PIECE):
        digest.update(piece)
    return digest.hexdigest()


def _copy(read: Callable[[int], bytes], size: int, to: BinaryIO) -> str:
    """Copy `size` bytes at most; return the digest of what came."""
    digest = hashlib.sha256()
    for piece in files.pieces(read, size):
        digest.update(piece)
        to.write(piece)
    return digest.hexdigest()
