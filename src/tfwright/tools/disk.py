"""A disk that refuses: what that is called, and what to do about it, in one place."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.errors import FullDiskError, HostError

if TYPE_CHECKING:
    import sqlite3

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
REFUSED = {
    errno.ENOENT: "is not there any more: something removed it meanwhile",
    errno.EROFS: "is on a disk that is mounted read-only",
    errno.EACCES: "cannot be read or written by this user",
    errno.EPERM: "cannot be read or written by this user",
    errno.EISDIR: "is a directory, where a file is wanted",
    errno.ENOTDIR: "cannot be made: a part of its path is not a directory",
    errno.ENXIO: "is a named pipe or a socket, where a file is wanted",
    errno.EEXIST: "cannot be made: a part of its path is a file",
    errno.ENAMETOOLONG: "has a name that is too long for this disk",
    errno.EIO: "cannot be read or written: the disk reports an error",
    errno.ESTALE: "is on a network disk that has lost it",
    errno.ELOOP: "is behind symbolic links that form a circle",
    errno.EXDEV: "is on another disk than the file that should be moved there",
    errno.ENOTEMPTY: "is a directory with files in it, where another thing is wanted",
    errno.EBUSY: "is in use by the system, as a mounted disk is",
    errno.ETXTBSY: "is a program that is running",
}
"""What the system calls EROFS and so on, as the end of a sentence about a path."""
LIMITS = {
    errno.EFBIG: ("A file may not be so large here", "f unlimited"),
    errno.EMFILE: ("This process may not open more files", "n $(ulimit -Hn)"),
    errno.EAGAIN: ("No more processes may be started", "u $(ulimit -Hu)"),
    errno.ENOMEM: ("The memory ran out", "v unlimited"),
}
"""What the limits of a shell or service refuse, with the option of ``ulimit`` that raises each.

A number could be less than what the shell has already: 1,024 files are usual.
"""
NO_ROOM = 1 << 20
"""Bytes left on a disk that count as none: not every program says why it could not write."""
PLACE = (
    "Name another path, or correct this one; builds write to build_out, which the host file names."
)
MOUNTED = (
    "Unmount it, and mount a disk on the directory above it: files move within that directory."
)
ACCESS = (
    "Give this user access to that path, or name another one; builds write to build_out, which the "
    "host file names."
)
REMEDIES = {
    errno.ENAMETOOLONG: "Use a shorter path.",
    errno.EBUSY: MOUNTED,
    errno.EXDEV: MOUNTED,
    errno.EACCES: ACCESS,
    errno.EPERM: ACCESS,
}
"""What helps against a refusal; PLACE against all others."""


def is_full(place: Path) -> bool:
    """Say whether the disk of a directory has no room left, or none for another file."""
    try:
        # A user's quota may be used up while the disk has room: only EDQUOT shows that.
        state = os.statvfs(place)
    except OSError:
        return False
    # Some disks have no fixed number of files, and say 0 of 0.
    no_more_files = state.f_files > 0 and state.f_favail == 0
    return no_more_files or state.f_bavail * state.f_frsize < NO_ROOM


def check_working_directory() -> None:
    """Raise HostError if the working directory was deleted: every relative path fails there."""
    try:
        Path.cwd()
    except OSError as fault:
        raise HostError(
            f"The working directory cannot be used: {_reason(fault)}",
            remedy="Change to another directory; this one was deleted or closed to this user.",
        ) from fault


def is_limit(fault: OSError) -> bool:
    """Say whether a limit of this process is at fault, whatever it was that it wanted to do."""
    return fault.errno in LIMITS


def host_error(fault: OSError, path: Path | None = None) -> HostError:
    """Return the error for a file that the system did not let us read or write."""
    # write() and close() raise without a name: only open() knows which file it was.
    named = path or fault.filename2 or fault.filename
    if fault.errno in LIMITS:
        what, option = LIMITS[fault.errno or 0]
        return HostError(
            f"{what}: {named or _reason(fault)}",
            remedy=f"Raise the limit of this shell with 'ulimit -{option}', or that of the service "
            "or container that started it.",
        )
    place = named or "build_out"
    if fault.errno in FULL:
        return FullDiskError(
            f"{place} cannot be written", place=Path(str(named)) if named else None
        )
    why = REFUSED.get(fault.errno or 0) or f"cannot be used: {_reason(fault)}"
    return HostError(f"{place} {why}", remedy=REMEDIES.get(fault.errno or 0, PLACE))


def _reason(fault: OSError) -> str:
    return fault.strerror or os.strerror(fault.errno or 0)


@contextmanager
def as_host_error(path: Path | None = None) -> Iterator[None]:
    """Turn what a disk or a limit refuses in the block into a HostError; other errors pass.

    Where the block is about one `path`, any error is about it.
    """
    try:
        yield
    except OSError as fault:
        # Any other OSError is a bug of ours, and must be shown as one.
        if path is None and fault.errno not in FULL | REFUSED.keys() | LIMITS.keys():
            raise
        raise host_error(fault, path) from fault
    except MemoryError as fault:
        raise host_error(OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))) from fault


_SQLITE_REFUSED = {10: errno.EIO, 8: errno.EACCES, 14: errno.EACCES, 3: errno.EACCES}
"""The system's number for SQLITE_IOERR, SQLITE_READONLY, SQLITE_CANTOPEN and SQLITE_PERM."""


def database_error(fault: "sqlite3.Error", file: Path) -> HostError | None:
    """Return the error for a database that the disk or another process refuses.

    None if neither is at fault, so that the file itself may be damaged: it must not be thrown away
    because a disk was full.
    """
    import sqlite3

    # The upper bits say where in SQLite it happened.
    code = getattr(fault, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return FullDiskError(f"{file} cannot be written", place=file)
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return HostError(
            f"Another process keeps {file} locked",
            remedy="Wait until it has ended, then start again.",
        )
    if code not in _SQLITE_REFUSED:
        return None
    # A disk without room for SQLite's own files reads as one that refuses.
    if is_full(file.parent):
        return FullDiskError(f"{file} cannot be written", place=file)
    return host_error(OSError(_SQLITE_REFUSED[code], str(fault), str(file)))
