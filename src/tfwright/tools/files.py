"""Files: digests, and writing so that a reader sees the old content or the new, never a half."""

import errno
import gzip
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedIOBase
from pathlib import Path

from tfwright.documents import filesystem
from tfwright.errors import HostError

CHUNK = 1 << 20
"""Bytes that are read at once of a file that may be large."""
TAIL = 1 << 20
"""Bytes at the end of a log in which its last lines are looked for."""


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content, as lower-case hex."""
    with filesystem.open_file(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def path_or_none(path: Path) -> Path | None:
    """Return the path of a file; None if the file does not exist."""
    return path if path.is_file() else None


def content(path: Path) -> bytes:
    """Return the bytes of a file of ours. Raises OSError, also for a pipe in its place."""
    with filesystem.open_file(path) as stream:
        return stream.read()


def has_content(path: Path, content: bytes) -> bool:
    """Say whether a file has exactly these bytes."""
    # Without a question for the size first: a night asks this for thousands of files, and most of
    # them have not changed.
    try:
        with filesystem.open_file(path) as stream:
            return stream.read(len(content) + 1) == content
    except OSError:
        return False


def chunks(read: Callable[[int], bytes], size: int) -> Iterator[bytes]:
    """Yield what `read` returns, one piece after the other: `size` bytes, or all up to the end."""
    # A file may be larger than the memory.
    while size and (piece := read(min(size, CHUNK))):
        yield piece
        size -= len(piece)


def text(path: Path, errors: str = "replace") -> str:
    """Return a text file of ours. Raises OSError, also for a pipe in its place."""
    return content(path).decode("utf-8", errors)


def open_unpacked(path: Path) -> BufferedIOBase:
    """Open a file, which its first bytes tell to be packed by gzip, or not."""
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else path.open("rb")


def tail(path: Path) -> str:
    """Return the end of a text file that may be of any size: whole lines, TAIL bytes of them."""
    with filesystem.open_file(path) as stream:
        size = stream.seek(0, os.SEEK_END)
        cut = size > TAIL
        stream.seek(max(0, size - TAIL))
        text = stream.read(TAIL).decode("utf-8", "replace")
    # The first line begins before what was read; it is shown only if it is all that there is.
    whole = text.partition("\n")[2]
    return whole if cut and whole else text


def sync(path: Path) -> None:
    """Return once a file, or the names in a directory, have reached the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replacing(path: Path, mode: int = 0o644) -> Iterator[Path]:
    """Give a temporary path next to `path`, which it replaces only if the block ends well.

    The content reaches the disk before the name does, so that a power cut leaves no empty file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same directory: rename is atomic only within one file system.
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as fault:
        # A name that no user knows.
        fault.filename = str(path)
        raise
    os.close(handle)
    temporary = Path(name)
    # Whatever goes wrong, also Ctrl-C, leaves no temporary file behind.
    try:
        yield temporary
        temporary.chmod(mode)
        sync(temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(what: str, folder: Path) -> None:
    """Raise HostError unless files can be made in a folder, or where it would be made.

    For what is asked before the long work whose result goes there.
    """
    whole = folder.absolute()
    there = next(each for each in (whole, *whole.parents) if each.exists())
    if not (there.is_dir() and os.access(there, os.W_OK)):
        raise HostError(
            f"{what} cannot be written: {there} takes no files",
            remedy="Name a place in a directory that you may write to.",
        )


@contextmanager
def scratch_directory(within: Path | None = None, prefix: str = "tfwright-") -> Iterator[Path]:
    """Give an empty directory, within another one or in /tmp; it is removed at the end."""
    if within:
        within.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=within, prefix=prefix) as folder:
        yield Path(folder)


def write(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a whole file at once."""
    with replacing(path, mode) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def move(source: Path, to: Path, mode: int = 0o444) -> None:
    """Give a file its place; its content reaches the disk before its name does."""
    to.parent.mkdir(parents=True, exist_ok=True)
    source.chmod(mode)
    try:
        sync(source)
        source.replace(to)
    except OSError as fault:
        # A part of build_out may be a link to another disk.
        if fault.errno != errno.EXDEV:
            raise
        with replacing(to, mode) as temporary:
            shutil.copyfile(source, temporary)
        source.unlink()


def link(source: Path | str, target: Path | str) -> None:
    """Give a file a second name; where the file system has no links, copy it."""
    target = Path(target)
    target.unlink(missing_ok=True)
    # A wheel of half a gigabyte is not stored twice.
    try:
        os.link(source, target)
    except OSError:
        with replacing(target) as temporary:
            shutil.copyfile(source, temporary)


def remove(path: Path) -> None:
    """Remove a file, a link or a whole directory, even with read-only directories in it.

    A missing path is fine.
    """
    if path.is_dir() and not path.is_symlink():
        # Bazel makes the directories of its output base read-only.
        for folder, _, _ in os.walk(path):
            Path(folder).chmod(0o700)
        shutil.rmtree(path)
    elif path.is_symlink() or path.exists():
        # Also a named pipe or a socket, which is neither file nor directory.
        path.unlink(missing_ok=True)


def remove_old(folder: Path, days: float) -> None:
    """Remove what lies in a directory and was not changed for so many days."""
    oldest = time.time() - days * 24 * 60 * 60
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        # Another process may remove it at the same time.
        with suppress(FileNotFoundError):
            if path.lstat().st_mtime < oldest:
                remove(path)
