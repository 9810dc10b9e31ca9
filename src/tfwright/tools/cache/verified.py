"""What was verified, and how the file system described it then: unchanged, it is not read again.

A file that is written to, replaced or linked gets another state. So the record of a build spares
the next one the checksums of files that nothing has touched since. It is sealed with the host's
secret, and states only what this host has computed.
"""

import hashlib
import hmac
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tfwright.tools import files, json_text

SETTLED_SECONDS = 2
"""How long ago a file was modified before its state counts; file systems' clocks are coarse."""


class FileState(NamedTuple):
    """A file as the file system describes it."""

    inode: int
    size: int
    """Bytes."""
    modified: int
    """Time of the last change of content, in nanoseconds."""
    changed: int
    """Time of the last change of content, attributes or links, in nanoseconds."""

    @classmethod
    def of(cls, found: os.stat_result) -> "FileState":
        """Return what stat(2) says that matters here."""
        return cls(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    def has_content_of(self, earlier: "FileState") -> bool:
        """Say whether at most links and attributes have changed since an earlier state."""
        return self[:3] == earlier[:3]


class VerifiedEntry(NamedTuple):
    """An entry of the action cache that is believed, and whose files are all verified."""

    state: FileState
    payload: str
    """SHA-256 of the entry without its seal."""
    blobs: tuple[str, ...]
    """Every file of the result, those in directories included."""
    ours: bool
    """Whether this host's secret sealed it; else a manifest has to list it."""


@dataclass(frozen=True)
class Verified:
    """What the last build with a toolchain left verified."""

    blobs: dict[str, FileState] = field(default_factory=dict)
    """By SHA-256 of the content."""
    entries: dict[str, VerifiedEntry] = field(default_factory=dict)
    """By action."""


def settled_time() -> int:
    """Return a time of modification that no later write can give a file, in nanoseconds.

    Two writes within one tick of the file system's clock leave the same time, and so would a write
    right after the checksum. git calls such files racily clean.
    """
    return (int(time.time()) - SETTLED_SECONDS) * 1_000_000_000


def read(file: Path, secret: bytes, toolchain: str) -> Verified:
    """Return a record; an empty one where there is none that the secret sealed."""
    try:
        mac, _, text = files.content(file).partition(b"\n")
        if not hmac.compare_digest(mac, _mac(text, secret, toolchain)):
            return Verified()
        said = json_text.parsed(text)
        return Verified(
            {sha256: FileState(*state) for sha256, state in said["blobs"].items()},
            {action: _entry(row) for action, row in said["entries"].items()},
        )
    # An earlier tfwright may have kept other fields.
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return Verified()


def write(file: Path, known: Verified, secret: bytes, toolchain: str) -> None:
    """Keep a record. Raises OSError."""
    said = {"blobs": known.blobs, "entries": known.entries}
    text = json.dumps(said, separators=(",", ":")).encode()
    files.write(file, _mac(text, secret, toolchain) + b"\n" + text)


def _entry(row: list[Any]) -> VerifiedEntry:
    state, payload, blobs, ours = row
    return VerifiedEntry(FileState(*state), payload, tuple(blobs), ours)


def _mac(text: bytes, secret: bytes, toolchain: str) -> bytes:
    head = f"verified:{toolchain}:".encode()
    return hmac.digest(secret, head + text, hashlib.sha256).hex().encode()
