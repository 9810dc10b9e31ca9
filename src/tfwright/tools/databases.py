"""What SQLite says when the disk, or another process, refuses."""

import errno
import sqlite3
from pathlib import Path

from tfwright.errors import HostError
from tfwright.tools import disk

REFUSED = {
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
}
"""What SQLite calls each refusal of the system."""


def failure(fault: sqlite3.Error, file: Path) -> HostError | None:
    """Return the error for a database that the disk or another process refuses.

    None if neither is at fault, so that the file itself may be damaged: it must not be thrown away
    because a disk was full.
    """
    # The upper bits say where in SQLite it happened.
    code = getattr(fault, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return disk.full(f"{file} cannot be written")
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return HostError(
            f"Another process keeps {file} locked",
            remedy="Wait until it has ended, then start again.",
        )
    if code not in REFUSED:
        return None
    # A disk without room for SQLite's own files reads as one that refuses.
    if disk.is_full(file.parent):
        return disk.full(f"{file} cannot be written")
    return disk.failure(OSError(REFUSED[code], str(fault), str(file)))
