"""A disk cache for one build, laid out for Bazel with links to what this host's cache has verified.

Bazel reads thousands of files from a directory in less time than it asks a server for them. The
directory holds ``<sha256>`` for blobs and ``ac_<action>`` for entries, as Bazel 0.17 to 2.1 lay out
theirs. They are hard links to files of the cache, laid out before the build only if they are
verified. These Bazels write to none of them: they copy what they read, and leave a name alone that
is there. After the build each link must still be what was laid out, and what Bazel has added is
verified and moved into the cache. A build that was killed leaves its directory to the next one.
"""

import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tfwright.tools import files
from tfwright.tools.cache import action_result, seal, verified
from tfwright.tools.cache.action_result import SHA256, Blob
from tfwright.tools.cache.build_cache import (
    FAULTS,
    BuildCache,
    MissError,
    UnbelievedError,
    reason,
)
from tfwright.tools.cache.store import (
    EMPTY,
    LARGEST_ENTRY,
    CacheDirectory,
    refreshed,
)
from tfwright.tools.cache.verified import FileState, Verified, VerifiedEntry
from tfwright.tools.cache.wire import MalformedMessageError

ENTRY = "ac_"
"""What the name of an entry begins with; a blob's name is its digest alone."""


class _Laid(NamedTuple):
    """A link, as it was laid out."""

    state: FileState
    read: int
    """Time of the last access, in nanoseconds: Bazel's reading of an entry changes it."""


class PrivateCache:
    """The disk cache of one build."""

    def __init__(self, cache: BuildCache, folder: Path) -> None:
        """Use a directory of the build's own, on the disk of the cache."""
        self.folder = folder
        self.spoiled = False
        """Whether a file changed that Bazel may have read: what was built is not to be believed."""
        self._cache = cache
        self._directory, self._trust = cache.directory, cache.trust
        self._laid: dict[str, _Laid] = {}
        self._entries: dict[str, VerifiedEntry] = {}
        self._refused: dict[str, str] = {}
        """Entries that could not be laid out, and why: a fault only if the build wants them."""
        self._added: list[str] = []

    def lay_out(self) -> None:
        """Link every entry of the toolchain that is believed, with its files. Raises OSError."""
        self.folder.mkdir(parents=True)
        # The cache does not hold it, and some Bazels ask for it.
        (self.folder / EMPTY).touch()
        trust = self._trust
        before = verified.read(self._record, trust.secret, trust.toolchain)
        self._directory.verified.update(before.blobs)
        for action in self._directory.actions(trust.toolchain):
            entry = self._verified(action, before)
            if entry:
                self._lay(action, entry)

    def take_in(self) -> None:
        """Count what Bazel took, move what it added into the cache, and remove the directory."""
        try:
            self._count()
            self._search_left()
            # Bazel before 0.26 computes no checksum of what it took: a wrong file could be
            # the input of anything that was built.
            if not self.spoiled:
                self._add()
        except OSError as fault:
            self._cache.tally.fault(reason(fault))
        files.remove(self.folder)
        self._remember()

    def _count(self) -> None:
        """Count what Bazel took, and remove the links."""
        hits = [action for action in self._entries if self._was_read(action)]
        used = {ENTRY + action for action in hits}
        for action in hits:
            used.update(self._entries[action].blobs)
            self._cache.tally.count("lookups")
            self._cache.hit(action, self._entries[action].payload)
        for name, laid in self._laid.items():
            self._give_back(name, laid, used=name in used)

    def _verified(self, action: str, before: Verified) -> VerifiedEntry | None:
        """Return an entry if it is to be believed and all its files are verified."""
        try:
            entry = before.entries.get(action)
            if entry and self._unchanged(action, entry):
                return entry
            return self._cache.verified(action)
        except FAULTS as fault:
            self._refused[action] = reason(fault)
            # Another host with another secret may believe it.
            if not isinstance(fault, UnbelievedError):
                self._directory.drop_entry(self._trust.toolchain, action)
            return None

    def _unchanged(self, action: str, entry: VerifiedEntry) -> bool:
        """Say whether nothing has touched an entry and its files. Raises OSError."""
        believed = entry.ours or self._trust.lists(action, entry.payload)
        state = FileState.of(os.lstat(self._entry_path(action)))
        return (
            believed
            and state == entry.state
            and all(map(self._unchanged_blob, entry.blobs))
        )

    def _unchanged_blob(self, sha256: str) -> bool:
        # What is laid out was looked at for another entry.
        known = sha256 == EMPTY or sha256 in self._laid
        return known or self._directory.unchanged(sha256)

    def _lay(self, action: str, entry: VerifiedEntry) -> None:
        """Link an entry, after its files: those of an entry that is left out do no harm."""
        try:
            for sha256 in entry.blobs:
                if sha256 != EMPTY and sha256 not in self._laid:
                    self._link(
                        self._directory.blob_path(sha256),
                        sha256,
                        self._directory.verified[sha256],
                    )
            self._link(self._entry_path(action), ENTRY + action, entry.state)
        except FAULTS as fault:
            self._refused[action] = reason(fault)
        else:
            self._entries[action] = entry

    def _link(self, path: Path, name: str, known: FileState) -> None:
        """Link a file that was verified. Raises MissError if it changed meanwhile, OSError."""
        link = f"{self.folder}/{name}"
        os.link(path, link, follow_symlinks=False)
        found = os.lstat(link)
        state = FileState.of(found)
        if not state.has_content_of(known):
            Path(link).unlink()
            raise MissError("a file of a result changed")
        self._laid[name] = _Laid(state, found.st_atime_ns)

    def _was_read(self, action: str) -> bool:
        """Say whether Bazel has read an entry."""
        name = ENTRY + action
        with suppress(OSError):
            link = (self.folder / name).lstat()
            return link.st_atime_ns != self._laid[name].read
        return False

    def _give_back(self, name: str, laid: _Laid, *, used: bool) -> None:
        """Remove a link, if it is what was laid out; else what was built is spoiled."""
        link = Path(f"{self.folder}/{name}")
        with suppress(OSError):
            if FileState.of(os.lstat(link)) != laid.state:
                self._directory.verified.pop(name, None)
                self._judge(link)
            link.unlink()
            if name.startswith(ENTRY):
                self._refresh_entry(name.removeprefix(ENTRY), laid, used=used)
            else:
                self._directory.refresh(name, used=used)

    def _refresh_entry(self, action: str, laid: _Laid, *, used: bool) -> None:
        """Take note that an entry has one link less. Raises OSError."""
        entry = self._entries.pop(action)
        state = refreshed(self._entry_path(action), laid.state, used=used)
        if state:
            self._entries[action] = entry._replace(state=state)

    def _judge(self, link: Path) -> None:
        """Compare a file that something has touched with its name."""
        try:
            if link.name.startswith(ENTRY):
                action = link.name.removeprefix(ENTRY)
                entry = files.content(link)
                good = self._trust.opened(action, entry) is not None
            else:
                good = files.sha256(link) == link.name
        except OSError:
            good = False
        self.spoiled = self.spoiled or not good

    def _add(self) -> None:
        """Move what Bazel added into the cache. Raises OSError."""
        for path in sorted(self.folder.glob(f"{ENTRY}*")):
            self._take(path)

    def _take(self, path: Path) -> None:
        """Take the result of an action that Bazel ran, with its files."""
        action = path.name.removeprefix(ENTRY)
        found = path.lstat()
        if not SHA256.fullmatch(action) or not _is_new(found):
            return
        self._cache.tally.count("lookups")
        if action in self._refused:
            self._cache.tally.fault(self._refused[action])
        if found.st_size > LARGEST_ENTRY:
            return
        # What a killed build left may be an entry of ours that was removed meanwhile.
        payload, _ = seal.remove(path.read_bytes())
        with suppress(MalformedMessageError):
            self._adopt_all(payload)
        self._cache.offer(action, payload)

    def _adopt_all(self, payload: bytes) -> None:
        """Move the files of a result in. Raises MalformedMessageError."""
        result = action_result.read(payload)
        for blob in (*result.trees, *result.blobs):
            self._adopt(blob)
        for tree in result.trees:
            stream = self._directory.opened(tree.sha256)
            if stream:
                with stream:
                    for blob in action_result.tree_blobs(stream.read()):
                        self._adopt(blob)

    def _adopt(self, blob: Blob) -> None:
        """Move a file in that Bazel has added."""
        path = self.folder / blob.sha256
        try:
            if blob.sha256 == EMPTY or not _is_new(path.lstat()):
                return
            if self._directory.adopt(path, blob.sha256):
                self._added.append(blob.sha256)
            else:
                self._cache.tally.fault(
                    "Bazel stored a file that changed meanwhile"
                )
        except FileNotFoundError:
            # It was laid out, or moved in for another result.
            return
        except OSError as fault:
            self._cache.tally.fault(reason(fault))

    def _search_left(self) -> None:
        """Look at the links that a killed build left: only their content can tell."""
        for path in self.folder.iterdir():
            if path.lstat().st_nlink > 1:
                self._judge(path)

    def _remember(self) -> None:
        """Write down what is verified, for the next build with this toolchain."""
        known = self._directory.verified
        names = (*self._laid, *self._added)
        blobs = {name: known[name] for name in names if name in known}
        trust, settled = self._trust, verified.settled_time()
        entries = {
            action: entry
            for action, entry in self._entries.items()
            if entry.state.modified <= settled
        }
        with suppress(OSError):
            verified.write(
                self._record,
                Verified(blobs, entries),
                trust.secret,
                trust.toolchain,
            )

    @property
    def _record(self) -> Path:
        # Hosts with other secrets may share the directory.
        whose = hashlib.sha256(self._trust.secret).hexdigest()[:16]
        name = f"{self._trust.toolchain}-{whose}.json"
        return self._directory.root / "verified" / name

    def _entry_path(self, action: str) -> Path:
        return self._directory.entry_path(self._trust.toolchain, action)


@contextmanager
def laid_out(cache: BuildCache, place: Path) -> Iterator[PrivateCache | None]:
    """Lay out a private cache below `place`; None where that cannot be, or another build has one.

    Nothing is taken in by itself: `take_in` has to wait until Bazel has ended.
    """
    private = PrivateCache(cache, place / cache.trust.toolchain)
    lock = cache.directory.root / "verified" / f"{cache.trust.toolchain}.lock"
    try:
        lock.parent.mkdir(exist_ok=True)
        # A second build would change the number of links, and times of access.
        stream = lock.open("ab")
    except OSError:
        yield None
        return
    with stream:
        begun = _begun(private, cache.directory, stream.fileno())
        yield private if begun else None


def take_left(cache: BuildCache, place: Path) -> bool:
    """Take in what builds left that were killed; say whether what they built is to be believed."""
    believed = True
    for folder in place.glob("*"):
        if SHA256.fullmatch(folder.name):
            # Its entries belong to the toolchain of that build.
            same = folder.name == cache.trust.toolchain
            listed = cache.trust.listed if same else {}
            trust = replace(cache.trust, toolchain=folder.name, listed=listed)
            left = PrivateCache(BuildCache(cache.directory, trust), folder)
            left.take_in()
            believed = believed and not left.spoiled
    return believed


def _begun(private: PrivateCache, directory: CacheDirectory, lock: int) -> bool:
    """Take the lock and lay out; say whether both was possible."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        place = private.folder.parent
        place.mkdir(parents=True, exist_ok=True)
        if not _shows_reading(directory, place):
            return False
        private.lay_out()
    except OSError:
        files.remove(private.folder)
        return False
    return True


def _shows_reading(directory: CacheDirectory, place: Path) -> bool:
    """Say whether the times of access of links at `place` show that they were read. Raises OSError.

    Some disks are mounted without such times; and a link cannot lead to another disk.
    """
    with (
        tempfile.NamedTemporaryFile(dir=directory.root) as probe,
        tempfile.TemporaryDirectory(dir=place) as room,
    ):
        link = Path(room, "link")
        os.link(probe.name, link)
        link.write_bytes(b"read me")
        os.utime(link, (0, 0))
        link.read_bytes()
        return link.stat().st_atime_ns != 0


def _is_new(found: os.stat_result) -> bool:
    """Say whether Bazel made a file: those of the cache have a second link there."""
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1
