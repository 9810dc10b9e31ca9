"""A disk cache for one build, laid out for Bazel with what this host's cache has verified.

Its blobs are hard links to files of the cache, its entries are copies. Bazels write to none of
them: they copy what they read, and leave a name alone that is there. After the build each link must
still be what was laid out, and what Bazel has added is verified and moved into the cache. A build
that was killed leaves its directory to the next one.
"""

import json
import os
from contextlib import suppress
from pathlib import Path

from tfwright.tools import files, json_text, trees
from tfwright.tools.cache import messages
from tfwright.tools.cache.messages import SHA256, Blob
from tfwright.tools.cache.remote import RemoteCache
from tfwright.tools.cache.store import (
    EMPTY,
    FAULTS,
    LARGEST_ENTRY,
    CacheStore,
    FileState,
    MissError,
    Seal,
    reason,
)
from tfwright.tools.cache.usage import CacheUse

LAID_OUT = ".json"
"""Suffix of the file, next to the directory, that says which entries were laid out in it, and how
the tree was before the build."""
CONVENIENCE = ("bin", "genfiles", "out", "testlogs")
"""Links that Bazel makes in the tree, each after ``bazel-``."""
ENTRY = "ac_"
"""What the name of an entry begins with in a flat directory; a blob's name is its digest alone."""


class PrivateCache:
    """The disk cache of one build."""

    def __init__(
        self, store: CacheStore, seal: Seal, place: Path, tree: Path, *, flat: bool = True
    ) -> None:
        """Use a directory below `place`, on the disk of the cache, for the tree that is built.

        Bazel before 2.2 has a `flat` directory, later ones folders for entries and for blobs.
        """
        self.use = CacheUse(toolchain=seal.toolchain)
        self.seal = seal
        self.folder = place / seal.toolchain
        self.spoiled = False
        """Whether a file changed that Bazel may have read: what was built is not to be believed."""
        self.actions: list[str] = []
        """Those of this build, whose entries were found or added."""
        self.fetched = 0
        """Entries that came from the remote cache."""
        self._store = store
        self._tree = tree
        self._flat = flat
        self._laid: dict[str, FileState] = {}
        """Blobs, as their links were laid out."""
        self._entries: dict[str, tuple[str, ...]] = {}
        """Actions whose entries were laid out = their blobs."""
        self._adopted: set[str] = set()
        self._refused: dict[str, str] = {}
        """Entries that could not be laid out, and why: a fault only if the build wants them."""
        self._record = self.folder.with_suffix(LAID_OUT)

    def lay_out(self, remote: RemoteCache | None) -> None:
        """Lay out every entry of the toolchain that is believed, with its files.

        What is missing, or was damaged, comes from the remote cache. Raises OSError.
        """
        self.folder.mkdir(parents=True)
        if not _records_access(self.folder):
            raise OSError(0, "the disk does not record when files are read (noatime)")
        # The cache does not hold it, and some Bazels ask for it.
        self._blob_link(EMPTY).touch()
        self._store.load_verified(self.seal)
        for action in self._store.actions(self.seal.toolchain):
            self._lay_entry(action)
        if remote:
            fetched = remote.pull(without=self._entries)
            self.fetched = len(fetched)
            for action in fetched:
                self._lay_entry(action)
        record = {"tree": self._tree_digest(), "actions": list(self._entries)}
        files.write(self._record, json.dumps(record))

    def take_in(self) -> None:
        """Count what Bazel took, move what it added into the cache, and remove the directory."""
        added: dict[str, bytes] = {}
        read: list[str] = []
        try:
            self._list_used(read, added)
            # Bazel before 0.26 computes no checksum of what it took: a wrong file could be
            # the input of anything that was built.
            # Looking at a whole tree is for nothing where all came from the cache.
            if added and not self.spoiled:
                # Bazel takes a file's digest before the action that reads it: where the file
                # changed in between, the result belongs to other sources than its entry says.
                if json_text.load_object(self._record).get("tree") != self._tree_digest():
                    self.use.count_fault("the tree changed while Bazel ran")
                    added.clear()
                for action, payload in sorted(added.items()):
                    self._take_result(action, payload)
        except OSError as fault:
            self.use.count_fault(reason(fault))
        with suppress(OSError):
            files.remove(self.folder)
            files.remove(self._record)
        self.actions += read
        used = {sha256 for action in read for sha256 in self._entries[action]}
        for action in read:
            self._store.use_entry(self.seal.toolchain, action)
            self.use.lookups += 1
            self.use.hits += 1
        for sha256 in self._laid:
            self._store.refresh(sha256, used=sha256 in used)
        self._store.save_verified(self.seal, (*self._laid, *self._adopted))

    def _lay_entry(self, action: str) -> None:
        """Lay out an entry, after its files: those of an entry that is left out do no harm."""
        toolchain = self.seal.toolchain
        try:
            entry = self._store.entry(toolchain, action)
            payload = self.seal.unseal(action, entry)
            if payload is None:
                # Another host with another secret may believe it.
                self._refused[action] = "an entry was not written by a trusted builder"
                return
            result = messages.parse_action_result(payload)
            blobs = {blob.sha256: blob for blob in (*result.blobs, *result.trees)}
            for blob in blobs.values():
                self._lay_blob(blob)
            # A list of files is read only after its own content was compared.
            blobs |= {blob.sha256: blob for blob in self._store.files_of(result)}
            for blob in blobs.values():
                self._lay_blob(blob)
            link = self._entry_path(ENTRY + action if self._flat else f"ac/{action[:2]}/{action}")
            link.write_bytes(entry)
            # Reading changes a time of access that is older than the content.
            os.utime(link, (0, 0))
        except FAULTS as fault:
            self._refused[action] = reason(fault)
            # Without the entry, Bazel runs the action and the new result replaces it.
            if not isinstance(fault, OSError):
                self._store.drop_entry(toolchain, action)
        else:
            self._entries[action] = tuple(blobs)

    def _lay_blob(self, blob: Blob) -> None:
        """Link a file of a result. Raises MissError, OSError."""
        sha256 = blob.sha256
        if sha256 == EMPTY or sha256 in self._laid:
            return
        self._store.verify(blob)
        link = self._blob_link(sha256)
        os.link(self._store.blob_path(sha256), link, follow_symlinks=False)
        state = FileState.of(link.lstat())
        if not state.has_content_of(self._store.verified[sha256]):
            link.unlink()
            raise MissError("a file of a result changed")
        # A link changes the state of its file.
        self._laid[sha256] = self._store.verified[sha256] = state

    def _list_used(self, read: list[str], added: dict[str, bytes]) -> None:
        """List the actions whose entries Bazel read, and the entries that it added.

        What is not as it was laid out is compared with its name. Raises OSError.
        """
        laid_out = set(json_text.load_object(self._record).get("actions", ()))
        for path, found in trees.files_below(self.folder):
            name = path.name.removeprefix(ENTRY)
            if not SHA256.fullmatch(name):
                continue
            if path.name == name and path.parent.parent != self.folder / "ac":
                # A killed build leaves links of which nothing is known.
                laid = self._laid.get(name)
                suspect = laid != FileState.of(found) if laid else found.st_nlink > 1
                if suspect and not self._store.compare(path, name):
                    self.spoiled = True
            elif found.st_size <= LARGEST_ENTRY:
                entry = files.content(path)
                if name not in laid_out:
                    added[name] = entry
                elif self.seal.unseal(name, entry) is None:
                    self.spoiled = True
                elif found.st_atime_ns and name in self._entries:
                    read.append(name)

    def _take_result(self, action: str, payload: bytes) -> None:
        """Take the result of an action that Bazel ran, with its files."""
        self.use.lookups += 1
        if action in self._refused:
            self.use.count_fault(self._refused[action])
        try:
            for blob in self._store.files_of(messages.parse_action_result(payload)):
                path = self._blob_link(blob.sha256)
                if blob.sha256 == EMPTY or blob.sha256 in self._adopted:
                    continue
                # An entry without its files would be a miss for each later build.
                if path.is_symlink() or not path.is_file():
                    raise MissError("a result came without its files")
                # Those of the cache have a second link there.
                if path.lstat().st_nlink > 1:
                    continue
                if not self._store.adopt(path, blob.sha256):
                    raise MissError("Bazel stored a file that changed meanwhile")
                self._adopted.add(blob.sha256)
            self._store.keep_entry(self.seal.toolchain, action, self.seal.add(action, payload))
        except FAULTS as fault:
            self.use.count_fault(reason(fault))
        else:
            self.actions.append(action)
            self.use.stored += 1

    def _tree_digest(self) -> str:
        """Return a digest of the state of all files of the tree. Raises OSError."""
        names = (*CONVENIENCE, self._tree.name)
        return trees.state_digest(
            self._tree, without=[f"{self._tree}/bazel-{name}" for name in names]
        )

    def _blob_link(self, sha256: str) -> Path:
        return self._entry_path(sha256 if self._flat else f"cas/{sha256[:2]}/{sha256}")

    def _entry_path(self, name: str) -> Path:
        path = self.folder / name
        if not self._flat:
            path.parent.mkdir(parents=True, exist_ok=True)
        return path


def recover_left(store: CacheStore, secret: bytes, place: Path, tree: Path) -> bool:
    """Take in what builds left that were killed; say whether what they built is to be believed."""
    believed = True
    for folder in place.glob("*"):
        if SHA256.fullmatch(folder.name):
            # Its entries belong to the toolchain of that build.
            seal = Seal(secret, folder.name)
            left = PrivateCache(store, seal, place, tree, flat=not (folder / "cas").is_dir())
            left.take_in()
            believed = believed and not left.spoiled
    return believed


def _records_access(folder: Path) -> bool:
    """Say whether times of access show what was read. Raises OSError."""
    probe = folder / "probe"
    probe.write_bytes(b"read me")
    os.utime(probe, (0, 0))
    probe.read_bytes()
    read = probe.stat().st_atime_ns != 0
    probe.unlink()
    return read
