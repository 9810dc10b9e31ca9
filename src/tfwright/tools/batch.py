"""Many files at once: all are on the disk before the first one gets its name."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tfwright.tools import files

AT_ONCE = 32
"""Files that are synced at once: a journal writes what waits together in one go."""
STAGING = ".staging"
"""The folder of files that have no name yet; its name keeps web servers from serving it."""


class FileBatch:
    """Files to be written together, in the order in which they are added."""

    def __init__(self, staging: Path) -> None:
        """Begin with no file; `staging` is a folder on the disk of all files."""
        self._staging = staging
        self._staged: list[tuple[Path, Path]] = []

    def add(self, path: Path, content: bytes) -> None:
        """Stage one file; one that has these bytes already is left alone."""
        if files.has_content(path, content):
            return
        temporary = self._staging / str(len(self._staged))
        temporary.write_bytes(content)
        # Whatever the umask of the caller: a web server runs as another user.
        temporary.chmod(0o644)
        self._staged.append((temporary, path))

    def place(self) -> int:
        """Give every staged file its name; return how many there were."""
        # Not os.sync(): it would wait for everything that a build next door writes.
        with ThreadPoolExecutor(AT_ONCE) as workers:
            list(workers.map(files.sync, [temporary for temporary, _ in self._staged]))
        # Before the first file gets its name: a full disk may refuse a folder, but no rename.
        for folder in dict.fromkeys(path.parent for _, path in self._staged):
            folder.mkdir(parents=True, exist_ok=True)
        for temporary, path in self._staged:
            # Only now, when all bytes are on the disk: after a power cut each file is old or new.
            temporary.replace(path)
        count = len(self._staged)
        self._staged.clear()
        return count


@contextmanager
def file_batch(folder: Path) -> Iterator[FileBatch]:
    """Give a batch for files below `folder`; what it has not placed at the end is removed.

    The caller holds a lock: what another batch of this folder left is waste of a killed one.
    """
    staging = folder / STAGING
    # A disk that is full stays full if every attempt leaves its files.
    files.remove(staging)
    staging.mkdir(parents=True)
    try:
        yield FileBatch(staging)
    except OSError as fault:
        # write() names no file, and the message has to name the disk.
        fault.filename = fault.filename or str(folder)
        raise
    finally:
        files.remove(staging)
