"""Many files at once: all are on the disk before the first one gets its name."""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

AT_ONCE = 32
"""Files that are synced at once: a journal writes what waits together in one go."""


class FileBatch:
    """Files to be written together, in the order in which they are added."""

    def __init__(self) -> None:
        """Begin with no file."""
        self._staged: list[tuple[Path, Path]] = []

    def add(self, path: Path, content: bytes) -> None:
        """Stage one file; one that has these bytes already is left alone."""
        if _holds(path, content):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        # Names of files are at most 255 bytes, and mkstemp adds its own part to the
        # prefix.
        handle, temporary = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name[:80]}."
        )
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        # mkstemp lets only the owner read, and a web server runs as another user.
        Path(temporary).chmod(0o644)
        self._staged.append((Path(temporary), path))

    def place(self) -> int:
        """Give every staged file its name; return how many there were."""
        # Not os.sync(): it would wait for everything that a build next door writes.
        with ThreadPoolExecutor(AT_ONCE) as workers:
            list(workers.map(_sync, [temporary for temporary, _ in self._staged]))
        for temporary, path in self._staged:
            # Only now, when all bytes are on the disk: after a power cut each file is
            # old or new.
            temporary.replace(path)
        count = len(self._staged)
        self._staged.clear()
        return count


def _holds(path: Path, content: bytes) -> bool:
    """Say whether a file has exactly these bytes; the sizes of most differ."""
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


def _sync(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
