"""Directories as one digest: of their content, and of what the file system says at a glance."""

import ctypes
import errno
import hashlib
import os
import platform
import stat
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from tfwright.tools import files

DEEPEST = 100
"""Directories within each other; links may lead in a circle."""

# Packed, since their decimal digits would take longer than the look at the file.
_FACTS = struct.Struct("=QQqqq")


def content_digest(root: Path, *, follow: bool = False, without: Sequence[str] = ()) -> str:
    """Return a digest of the paths, kinds, modes and contents of everything in a directory.

    Raises OSError if a part of it cannot be read. With `follow`, a link counts as what it leads to:
    Bazel's runfiles are links, and what is packed is what they lead to. Paths that end with one of
    `without` are left out.
    """
    whole = hashlib.sha256()
    for text, state in _walk(root, follow=follow):
        path = Path(text)
        name = path.relative_to(root).as_posix()
        if name.endswith(tuple(without)):
            continue
        # Of the mode only what git keeps as well: the rest depends on the umask.
        executable = "x" if state.st_mode & stat.S_IXUSR else "-"
        kind = f"link {path.readlink()}" if stat.S_ISLNK(state.st_mode) else "folder"
        if stat.S_ISREG(state.st_mode):
            kind = files.sha256(path)
        whole.update(f"{kind} {executable} {name}\0".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def state_digest(root: Path, *, follow: bool = False, without: Sequence[str] = ()) -> str:
    """Return a digest of the file system's facts about a directory's files, without reading them.

    While it stays the same, so does the content: a file cannot be changed without its time of
    change. Paths that end with one of `without` are left out. Raises OSError if the directory is
    gone.
    """
    whole = hashlib.sha256()
    left_out = tuple(without)
    for path, state in _walk(root, follow=follow):
        if path.endswith(left_out):
            continue
        # Entries make a directory's size and times, and each one counts for itself: what replaces
        # a file that is left out changes nothing here. The time of access is left out as well:
        # reading changes it, and not the content.
        size, modified, changed = (
            (0, 0, 0)
            if stat.S_ISDIR(state.st_mode)
            else (state.st_size, state.st_mtime_ns, state.st_ctime_ns)
        )
        whole.update(_FACTS.pack(state.st_ino, state.st_mode, size, modified, changed))
        whole.update(os.fsencode(path) + b"\0")
    return whole.hexdigest()


def files_below(root: Path, *, follow: bool = False) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the regular files below a directory, in no order, each with its state.

    With `follow`, a link to a file counts as that file. What vanishes meanwhile, or cannot be
    looked at, is left out: others may be at work in the directory.
    """
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            try:
                state = path.stat(follow_symlinks=follow)
            except OSError:
                continue
            if stat.S_ISREG(state.st_mode):
                yield path, state


def size(root: Path) -> int:
    """Return the bytes of all files below a directory."""
    return sum(state.st_size for _, state in files_below(root))


def sync_disk(place: Path) -> None:
    """Wait until everything that programs wrote to the disk of `place` is on it.

    Bazel leaves its outputs to the system, which writes them some time later, in any order. A stamp
    is on the disk at once. After a power cut it could speak of outputs whose names and times came
    to the disk, and whose bytes did not. So the outputs go first, then the stamp.

    Raises OSError if the disk could not take them.
    """
    if platform.system() != "Linux":
        os.sync()
        return
    handle = os.open(place, os.O_RDONLY)
    try:
        # Only this disk: os.sync() would wait for all others as well.
        if ctypes.CDLL(None, use_errno=True).syncfs(handle) != 0:
            # The disk lost some of it, or is full: a stamp would be a lie.
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(place))
    finally:
        os.close(handle)


def _walk(root: Path, *, follow: bool) -> Iterator[tuple[str, os.stat_result]]:
    """Yield everything below a directory with its state, sorted by name in each directory.

    Each build walks through thousands of runfiles, so the paths are strings and the directories
    are on a stack: generators within generators, and a Path for each entry, take more than twice as
    long.
    """
    waiting = [(entry, 0) for entry in _sorted_entries(root)]
    while waiting:
        entry, depth = waiting.pop()
        try:
            state = entry.stat(follow_symlinks=follow)
        except OSError as fault:
            if fault.errno not in {errno.ENOENT, errno.ELOOP}:
                raise
            # A broken link counts as itself.
            state = entry.stat(follow_symlinks=False)
        yield entry.path, state
        if stat.S_ISDIR(state.st_mode) and depth < DEEPEST:
            # With `follow` a link to its own parent would be walked for ever.
            waiting += [(inner, depth + 1) for inner in _sorted_entries(entry)]


def _sorted_entries(folder: "os.PathLike[str]") -> "list[os.DirEntry[str]]":
    """Return what a directory holds, by name from the last to the first, as a stack needs it."""
    with os.scandir(folder) as found:
        return sorted(found, key=lambda entry: entry.name, reverse=True)
