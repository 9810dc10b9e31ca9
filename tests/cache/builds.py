"""Builds that read and add to a disk cache as Bazel does."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tfwright.tools.cache import messages
from tfwright.tools.cache.private import PrivateCache
from tfwright.tools.cache.store import CacheStore, Seal
from tfwright.tools.cache.usage import CacheUse

TOOLCHAIN = "a" * 64
SEAL = Seal(b"s" * 32, TOOLCHAIN)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


ACTION, OTHER = sha256(b"an action"), sha256(b"another action")
EMPTY = sha256(b"")


def digest(content: bytes) -> bytes:
    """Return a Digest message."""
    head = messages.encode_field(1, sha256(content).encode())
    return head + b"\x10" + messages._encode_varint(len(content))


def output(path: str, content: bytes) -> bytes:
    """Return an OutputFile in an ActionResult."""
    listed = messages.encode_field(1, path.encode()) + messages.encode_field(2, digest(content))
    return messages.encode_field(2, listed)


@dataclass
class Build:
    """A build, with its cache as tfwright lays it out."""

    private: PrivateCache
    store: CacheStore
    flat: bool = True

    @property
    def offered(self) -> set[str]:
        """What Bazel finds: actions and digests."""
        found = (path for path in self.private.folder.rglob("*") if path.is_file())
        return {path.name.removeprefix("ac_") for path in found}

    def entry(self, action: str) -> Path:
        name = f"ac_{action}" if self.flat else f"ac/{action[:2]}/{action}"
        return self._place(name)

    def blob(self, name: str) -> Path:
        return self._place(name if self.flat else f"cas/{name[:2]}/{name}")

    def read(self, action: str) -> None:
        self.entry(action).read_bytes()

    def add(self, action: str, *contents: bytes, payload: bytes | None = None) -> None:
        """Store an action's result: the files, then the entry."""
        for content in contents:
            self.blob(sha256(content)).write_bytes(content)
        made = (output(f"{index}.o", content) for index, content in enumerate(contents))
        self.entry(action).write_bytes(b"".join(made) if payload is None else payload)

    def end(self) -> CacheUse:
        self.private.take_in()
        return self.private.use

    def _place(self, name: str) -> Path:
        path = self.private.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


Begin = Callable[..., Build]


def overwrite(path: Path, content: bytes) -> None:
    """Change a file of the cache, which is read-only."""
    path.chmod(0o600)
    path.write_bytes(content)


def file_of(store: CacheStore, content: bytes) -> Path:
    return store.blob_path(sha256(content))


def entry_of(store: CacheStore, action: str) -> Path:
    return store.entry_path(TOOLCHAIN, action)
