"""Files that are still arriving: hashed as they grow, continued after a kill, with one writer at a time."""

import fcntl
import hashlib
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tfwright.errors import HostError

PIECE = 1 << 20
"""Bytes that are moved at once."""
AHEAD = 8
"""Pieces that may wait to be hashed while more arrive."""
EARLY = 4 << 20
"""Bytes after which the disk is given something to do, while more arrive."""


class BusyError(Exception):
    """Another process, or another thread of this one, is filling the file."""


class Growing:
    """A file that grows at its end and whose digest is known at every moment.

    Pieces are hashed while they are written and the next ones arrive, and the disk begins with what is
    there, so that a single large file is slowed neither by its digest nor by the wait for the disk.
    """

    def __init__(self, stream: BinaryIO) -> None:
        """Take over an unbuffered `stream`; what it holds already is hashed once."""
        self.size = 0
        self._stream = stream
        self._digest = hashlib.sha256()
        self._beside = ThreadPoolExecutor(1, "sha256")
        self._hashing: deque[Future[None]] = deque()
        while piece := stream.read(PIECE):
            self._digest.update(piece)
            self.size += len(piece)
        self._begun = self.size

    def append(self, piece: bytes) -> None:
        """Write a piece at the end. Raises HostError if the disk does not take it."""
        self._settle(AHEAD - 1)
        self._hashing.append(self._beside.submit(self._digest.update, piece))
        rest = memoryview(piece)
        with _room_on_disk(self._stream.name):
            while rest:
                rest = rest[self._stream.write(rest) :]
            self.size += len(piece)
            self._begin_writing()

    def restart(self) -> None:
        """Forget everything that arrived."""
        self._settle()
        self._stream.seek(0)
        self._stream.truncate()
        self._digest = hashlib.sha256()
        self.size = self._begun = 0

    def sha256(self) -> str:
        """Return the digest of what is there."""
        self._settle()
        return self._digest.hexdigest()

    def close(self) -> None:
        """Let go of the file."""
        self._beside.shutdown()
        self._stream.close()

    def _begin_writing(self) -> None:
        """Let the kernel begin to write what arrived, so that little is left to wait for at the end; macOS cannot be asked to."""
        if self.size - self._begun >= EARLY and hasattr(os, "posix_fadvise"):
            # What is not on the disk yet cannot be dropped from memory: Linux begins to write it, and does not wait.
            os.posix_fadvise(
                self._stream.fileno(), self._begun, self.size - self._begun, os.POSIX_FADV_DONTNEED
            )
            self._begun = self.size

    def _settle(self, but: int = 0) -> None:
        """Wait until all pieces are hashed, `but` for the newest ones."""
        while len(self._hashing) > but:
            self._hashing.popleft().result()


class Partial(Growing):
    """The beginning of a file with a known digest: it takes its place only when it has that digest."""

    def __init__(self, final: Path, sha256: str) -> None:
        """Go on with what an earlier writer left of `final`, or start it.

        Raises BusyError while another one writes, and FileExistsError if the file is there by now.
        """
        self._final, self._sha256 = final, sha256
        self._path = beside(final)
        super().__init__(_locked(self._path))
        if final.exists():
            self.restart()
        elif self.whole():
            # The earlier writer was killed between the last byte and the file's name.
            self.keep()
        else:
            return
        self.close()
        raise FileExistsError(final)

    def whole(self) -> bool:
        """Tell whether everything is there."""
        return self.sha256() == self._sha256

    def keep(self) -> None:
        """Put the whole file into its place, on the disk before under its name. Raises HostError if the disk is full."""
        if not self.whole():
            message = f"{self._path} is not what it has to be"
            raise ValueError(message)
        with _room_on_disk(str(self._path)):
            os.fchmod(self._stream.fileno(), 0o444)
            os.fsync(self._stream.fileno())
            self._path.replace(self._final)

    def close(self) -> None:
        """Let go of the file; nothing stays of one that never began."""
        if not self.size:
            self._path.unlink(missing_ok=True)
        super().close()


def beside(final: Path) -> Path:
    """Return where a file grows until it is whole."""
    return final.with_name("partial")


def _locked(path: Path) -> BinaryIO:
    """Open a partial file for this writer only; the kernel drops the lock when the process ends, however it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        stream = path.open("a+b", buffering=0)
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.close()
            raise BusyError from None
        if _is_still(stream, path):
            stream.seek(0)
            return stream
        stream.close()


def _is_still(stream: BinaryIO, path: Path) -> bool:
    """Tell whether `path` still names the open file: another writer may have finished it before we had the lock."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def _room_on_disk(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        raise HostError(
            f"{name} could not be written: {fault.strerror}",
            remedy="Make room on that disk, or move build_out in the host file.",
        ) from fault
