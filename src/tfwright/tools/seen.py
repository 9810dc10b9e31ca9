"""Files that were read before: their checksums, which hold as long as their state does."""

import json
from pathlib import Path

from tfwright.tools import files, json_text


def content(path: Path) -> str:
    """Return the checksum of a file, or where a link leads, as ``-> TARGET``."""
    return f"-> {path.readlink()}" if path.is_symlink() else files.sha256(path)


class SeenFiles:
    """What `content` said of each file, read again only where the file's state changed."""

    def __init__(self, memo: Path) -> None:
        """Remember what the file `memo` says; it need not exist yet."""
        self._memo = memo
        self._known: dict[str, list[object]] = json_text.load_object(memo)
        self._seen: dict[str, list[object]] = {}

    def content(self, path: Path) -> str:
        """Return what `content` says of a file or link. Raises OSError."""
        found = path.lstat()
        # The change time too: a package manager sets the modification time, not that one.
        state: list[object] = [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
        known = self._known.get(str(path), [])
        checksum_or_target = str(known[-1]) if known[:-1] == state else content(path)
        self._seen[str(path)] = [*state, checksum_or_target]
        return checksum_or_target

    def save(self) -> None:
        """Write down what was read."""
        if any(self._known.get(path) != state for path, state in self._seen.items()):
            files.write(self._memo, json.dumps({**self._known, **self._seen}))
