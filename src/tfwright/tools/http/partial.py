"""Files that are still arriving: hashed as they grow, continued after a kill, one writer each."""

import fcntl
import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from tfwright.tools import disk

PIECE = 1 << 20
"""Bytes that are read from a server at once."""
FLUSHED = 4 << 20
"""Bytes after which the kernel is asked to begin writing them to the disk."""


class BusyError(Exception):
    """Another process, or another thread of this one, is writing the file."""


class Partial:
    """The beginning of a file, which gets its name only when it has the known digest.

    Pieces are hashed as they are written, and the kernel begins to write them early, so that a
    large file waits neither for its digest nor for the disk at its end.
    """

    def __init__(self, final: Path, sha256: str) -> None:
        """Continue what an earlier writer left of `final`, or start it.

        An empty `sha256` means that the digest is not known: then nothing can be continued. Raises
        BusyError while another writer is at it, and FileExistsError if the file is there by now.
        """
        self.size = 0
        self._final, self._known = final, sha256
        self._path = final.with_name("partial")
        self._stream = _open_locked(self._path)
        self._digest = hashlib.sha256()
        while piece := self._stream.read(PIECE):
            self._digest.update(piece)
            self.size += len(piece)
        self._flushed = self.size
        there = final.exists()
        if there or not sha256:
            self.restart()
        elif self.is_complete():
            # The earlier writer was killed between the last byte and the file's name.
            self.keep()
            there = True
        if there:
            self.close()
            raise FileExistsError(final)

    def append(self, piece: bytes) -> None:
        """Write a piece at the end. Raises HostError if the disk does not take it."""
        self._digest.update(piece)
        rest = memoryview(piece)
        with disk.as_host_error(self._path):
            while rest:
                rest = rest[self._stream.write(rest) :]
            self.size += len(piece)
            fresh = self.size - self._flushed
            # macOS has no such call. Linux cannot drop dirty pages from memory, so it begins to
            # write them, and does not wait.
            if fresh >= FLUSHED and hasattr(os, "posix_fadvise"):
                number, advice = self._stream.fileno(), os.POSIX_FADV_DONTNEED
                os.posix_fadvise(number, self._flushed, fresh, advice)
                self._flushed = self.size

    def restart(self) -> None:
        """Forget everything that arrived, and give its space on the disk back."""
        self._stream.seek(0)
        self._stream.truncate()
        self._digest = hashlib.sha256()
        self.size = self._flushed = 0

    def free_space(self) -> int:
        """Return how many bytes the disk has left."""
        return shutil.disk_usage(self._path.parent).free

    def sha256(self) -> str:
        """Return the digest of what is there, as lower-case hex."""
        return self._digest.hexdigest()

    def is_complete(self) -> bool:
        """Tell whether everything is there, as far as a known digest can tell."""
        return bool(self._known) and self.sha256() == self._known

    def keep(self) -> None:
        """Give the complete file its name; its content reaches the disk first.

        Raises HostError if the disk is full, ValueError if the digest is not the known one.
        """
        if self._known and not self.is_complete():
            raise ValueError(f"{self._path} does not have the digest {self._known}")
        with disk.as_host_error(self._path):
            os.fchmod(self._stream.fileno(), 0o444)
            os.fsync(self._stream.fileno())
            self._path.replace(self._final)

    def close(self) -> None:
        """Close the file; an empty one is removed."""
        if not self.size:
            self._path.unlink(missing_ok=True)
        self._stream.close()


def _open_locked(path: Path) -> BinaryIO:
    """Open a partial file, which is made if there is none, for this writer only.

    The kernel drops the lock when the process ends, however it ends.
    """
    with disk.as_host_error(path):
        while True:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                stream = path.open("a+b", buffering=0)
            except FileNotFoundError:
                if path.parent.exists():
                    raise
                # Another process found nothing and removed the empty directory just now.
                continue
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                stream.close()
                raise BusyError from None
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(stream.fileno()), path.stat()):
                    stream.seek(0)
                    return stream
            # Another writer finished the file, and gave it its name, before we had the lock.
            stream.close()
