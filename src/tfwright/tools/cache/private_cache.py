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

from tfwright.tools import files, trees
from tfwright.tools.cache import action_result, seal, verified
from tfwright.tools.cache.action_result import SHA256, Blob
from tfwright.tools.cache.build_cache import FAULTS, BuildCache, MissError, UnbelievedError, reason
from tfwright.tools.cache.store import EMPTY, LARGEST_ENTRY, CacheDirectory, refreshed
from tfwright.tools.cache.verified import FileState, Verified, VerifiedEntry
from tfwright.tools.cache.wire import MalformedMessageError

SOURCES = ".sources"
"""Suffix of the file, next to the directory, that says how the tree was before the build."""
CONVENIENCE = ("bin", "genfiles", "out", "testlogs")
"""Links that Bazel makes in the tree, each after ``bazel-``."""
ENTRY = "ac_"
"""What the name of an entry begins with; a blob's name is its digest alone."""


class _Laid(NamedTuple):
    """A link, as it was laid out."""

    state: FileState
    read: int
    """Time of the last access, in nanoseconds: Bazel's reading of an entry changes it."""


class PrivateCache:
    """The disk cache of one build."""

    def __init__(self, cache: BuildCache, folder: Path, tree: Path) -> None:
        """Use a directory of the build's own, on the disk of the cache, for the tree it builds."""
        self.folder = folder
        self.spoiled = False
        """Whether a file changed that Bazel may have read: what was built is not to be believed."""
        self._cache = cache
        self._directory = cache.directory
        self._trust = cache.trust
        self._tree = tree
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
        files.write(self._before, self._sources())
        trust = self._trust
        before = verified.read(self._record, trust.secret, trust.toolchain)
        self._directory.verified.update(before.blobs)
        for action in self._directory.actions(trust.toolchain):
            entry = self._verified(action, before)
            if entry:
                self._lay(action, entry)

    def take_in(self) -> None:
        """Count what Bazel took, move what it added into the cache, and remove the directory."""
        used: set[str] = set()
        try:
            read, added = self._inspect()
            used = self._count(read)
            # Bazel before 0.26 computes no checksum of what it took: a wrong file could be
            # the input of anything that was built.
            # Looking at a whole tree is for nothing where all came from the cache.
            if added and not self.spoiled and self._sources_are_unchanged():
                for action in added:
                    self._take(action)
        except OSError as fault:
            self._cache.tally.fault(reason(fault))
        with suppress(OSError):
            files.remove(self.folder)
            files.remove(self._before)
        self._refresh(used)
        self._remember()

    def _sources(self) -> str:
        """Return a digest of the state of all files of the tree. Raises OSError."""
        names = (*CONVENIENCE, self._tree.name)
        links = [f"{self._tree}/bazel-{name}" for name in names]
        return trees.glance(self._tree, without=links)

    def _sources_are_unchanged(self) -> bool:
        """Say whether the tree is as it was before the build. Raises OSError.

        Bazel takes a file's digest before the action that reads it: where the file changed in
        between, the result belongs to other sources than its entry says.
        """
        before = files.text(self._before) if self._before.exists() else ""
        if before == self._sources():
            return True
        self._cache.tally.fault("the tree changed while Bazel ran")
        return False

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
        return believed and state == entry.state and all(map(self._unchanged_blob, entry.blobs))

    def _unchanged_blob(self, sha256: str) -> bool:
        # What is laid out was looked at for another entry.
        known = sha256 == EMPTY or sha256 in self._laid
        return known or self._directory.unchanged(sha256)

    def _lay(self, action: str, entry: VerifiedEntry) -> None:
        """Link an entry, after its files: those of an entry that is left out do no harm."""
        try:
            for sha256 in entry.blobs:
                if sha256 != EMPTY and sha256 not in self._laid:
                    self._lay_blob(sha256)
            self._link(self._entry_path(action), ENTRY + action, entry.state)
        except FAULTS as fault:
            self._refused[action] = reason(fault)
        else:
            self._entries[action] = entry

    def _lay_blob(self, sha256: str) -> None:
        """Link a file of a result. Raises MissError, OSError."""
        known = self._directory.verified
        path = self._directory.blob_path(sha256)
        self._link(path, sha256, known[sha256])
        # A link changes the state of its file, and another entry may ask for the file again.
        known[sha256] = self._laid[sha256].state

    def _link(self, path: str, name: str, known: FileState) -> None:
        """Link a file that was verified. Raises MissError if it changed meanwhile, OSError."""
        link = f"{self.folder}/{name}"
        os.link(path, link, follow_symlinks=False)
        found = os.lstat(link)
        state = FileState.of(found)
        if not state.has_content_of(known):
            Path(link).unlink()
            raise MissError("a file of a result changed")
        self._laid[name] = _Laid(state, found.st_atime_ns)

    def _inspect(self) -> tuple[list[str], list[str]]:
        """Return the actions whose entries Bazel read, and those whose entries it added.

        What is not as it was laid out is looked at.
        """
        read, added = [], []
        with os.scandir(self.folder) as found:
            for item in found:
                state = item.stat(follow_symlinks=False)
                laid = self._laid.get(item.name)
                if _is_suspect(state, laid):
                    self._judge(Path(item.path))
                if laid and laid.read != state.st_atime_ns:
                    read.append(item.name)
                if laid is None and _is_new(state):
                    added.append(item.name)
        return _actions(read), _actions(added)

    def _count(self, actions: list[str]) -> set[str]:
        """Count the actions whose entries were read; return the names of their links."""
        used = {ENTRY + action for action in actions}
        for action in actions:
            entry = self._entries[action]
            used.update(entry.blobs)
            self._cache.tally.count("lookups")
            self._cache.hit(action, entry.payload)
        return used

    def _refresh(self, used: set[str]) -> None:
        """Take note that the files of the cache have one link less, and which were used."""
        for name, laid in self._laid.items():
            if name.startswith(ENTRY):
                self._refresh_entry(name, laid.state, used=name in used)
            else:
                self._directory.refresh(name, used=name in used)

    def _refresh_entry(self, name: str, laid: FileState, *, used: bool) -> None:
        action = name.removeprefix(ENTRY)
        entry = self._entries.pop(action)
        with suppress(OSError):
            state = refreshed(self._entry_path(action), laid, used=used)
            if state:
                self._entries[action] = entry._replace(state=state)

    def _judge(self, link: Path) -> None:
        """Compare a file that is suspect with its name; another content spoils the build."""
        self._directory.verified.pop(link.name, None)
        try:
            good = self._is_good(link)
        except OSError:
            good = False
        self.spoiled = self.spoiled or not good

    def _is_good(self, link: Path) -> bool:
        """Say whether a file has the content that its name promises. Raises OSError."""
        if not link.name.startswith(ENTRY):
            return files.sha256(link) == link.name
        # An entry's name is that of its action: only its seal says what it was.
        action = link.name.removeprefix(ENTRY)
        return self._trust.opened(action, files.content(link)) is not None

    def _take(self, action: str) -> None:
        """Take the result of an action that Bazel ran, with its files. Raises OSError."""
        path = self.folder / f"{ENTRY}{action}"
        self._cache.tally.count("lookups")
        if action in self._refused:
            self._cache.tally.fault(self._refused[action])
        if path.stat().st_size > LARGEST_ENTRY:
            return
        # What a killed build left may be an entry of ours that was removed meanwhile.
        payload, _ = seal.remove(path.read_bytes())
        # What is missing or cannot be read keeps the result out of the cache.
        with suppress(MalformedMessageError, MissError):
            for blob in self._cache.files_of(action_result.read(payload)):
                self._adopt(blob)
        self._cache.offer(action, payload)

    def _adopt(self, blob: Blob) -> None:
        """Move a file in that Bazel has added."""
        path = self.folder / blob.sha256
        try:
            if blob.sha256 == EMPTY or not _is_new(path.lstat()):
                return
            if self._directory.adopt(path, blob.sha256):
                self._added.append(blob.sha256)
            else:
                self._cache.tally.fault("Bazel stored a file that changed meanwhile")
        except FileNotFoundError:
            # It was laid out, or moved in for another result.
            return
        except OSError as fault:
            self._cache.tally.fault(reason(fault))

    def _remember(self) -> None:
        """Write down what is verified, for the next build with this toolchain."""
        known = self._directory.verified
        names = (*self._laid, *self._added)
        blobs = {name: known[name] for name in names if name in known}
        trust = self._trust
        settled = verified.settled_time()
        entries = {
            action: entry
            for action, entry in self._entries.items()
            if entry.state.modified <= settled
        }
        with suppress(OSError):
            verified.write(self._record, Verified(blobs, entries), trust.secret, trust.toolchain)

    @property
    def _before(self) -> Path:
        return self.folder.with_suffix(SOURCES)

    @property
    def _record(self) -> Path:
        # Hosts with other secrets may share the directory.
        whose = hashlib.sha256(self._trust.secret).hexdigest()[:16]
        name = f"{self._trust.toolchain}-{whose}.json"
        return self._directory.root / "verified" / name

    def _entry_path(self, action: str) -> str:
        return self._directory.entry_path(self._trust.toolchain, action)


@contextmanager
def laid_out(cache: BuildCache, place: Path, tree: Path) -> Iterator[PrivateCache | None]:
    """Lay out a private cache below `place`; None where that cannot be, or another build has one.

    Nothing is taken in by itself: `take_in` has to wait until Bazel has ended.
    """
    private = PrivateCache(cache, place / cache.trust.toolchain, tree)
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


def take_left(cache: BuildCache, place: Path, tree: Path) -> bool:
    """Take in what builds left that were killed; say whether what they built is to be believed."""
    believed = True
    for folder in place.glob("*"):
        if SHA256.fullmatch(folder.name):
            # Its entries belong to the toolchain of that build.
            same = folder.name == cache.trust.toolchain
            listed = cache.trust.listed if same else {}
            trust = replace(cache.trust, toolchain=folder.name, listed=listed)
            left = PrivateCache(BuildCache(cache.directory, trust), folder, tree)
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


def _actions(names: list[str]) -> list[str]:
    """Return the actions among the names of a disk cache, in order."""
    entries = (name for name in names if name.startswith(ENTRY))
    actions = sorted(name.removeprefix(ENTRY) for name in entries)
    return list(filter(SHA256.fullmatch, actions))


def _is_suspect(found: os.stat_result, laid: _Laid | None) -> bool:
    """Say whether something has touched a file of the cache, or a killed build left it."""
    if laid is None:
        return stat.S_ISREG(found.st_mode) and found.st_nlink > 1
    return laid.state != FileState.of(found)


def _is_new(found: os.stat_result) -> bool:
    """Say whether Bazel made a file: those of the cache have a second link there."""
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1
