"""Seals on entries of the action cache: who holds the secret wrote this entry, for this action.

A blob's name proves its content. An entry's name is the digest of the *action*, so that nothing
in the entry shows whether it belongs there. A seal does: an HMAC over toolchain, action and entry.
It is one more field of the message, which every server keeps and Bazel ignores.
"""

import hashlib
import hmac
import secrets
from pathlib import Path

from tfwright.errors import HostError
from tfwright.tools import files
from tfwright.tools.cache import wire

FIELD = 2016
"""Number of the field that holds a seal; the API's own end at 20."""
SIZE = 32
"""Bytes of a secret and of a seal."""
_EMPTY = wire.field(FIELD, bytes(SIZE))
_HEAD = _EMPTY[:-SIZE]


def add(payload: bytes, secret: bytes, toolchain: str, action: str) -> bytes:
    """Return an entry with its seal."""
    return payload + wire.field(FIELD, _seal(payload, secret, toolchain, action))


def remove(entry: bytes) -> tuple[bytes, bytes]:
    """Return an entry without its seal, and the seal; empty if it has none."""
    head = entry[-len(_EMPTY) : -SIZE]
    seal = entry[-SIZE:]
    return (entry[: -len(_EMPTY)], seal) if head == _HEAD else (entry, b"")


def holds(payload: bytes, seal: bytes, secret: bytes, toolchain: str, action: str) -> bool:
    """Say whether a seal was made with the secret, for this toolchain and action."""
    return hmac.compare_digest(seal, _seal(payload, secret, toolchain, action))


def secret(path: Path) -> bytes:
    """Return the secret of a file; a file that does not exist is made, readable by its owner only.

    Raises HostError if it cannot be read or made, or is too short to protect anything.
    """
    try:
        if not path.exists():
            files.write(path, secrets.token_hex(SIZE), 0o600)
        content = path.read_bytes().strip()
    except OSError as fault:
        what = f"The build cache's secret {path} cannot be read or made: {fault.strerror}"
        raise HostError(what, remedy="Check the path and its permissions.") from fault
    if len(content) < SIZE:
        what = f"The build cache's secret {path} has {len(content)} bytes; {SIZE} is the least"
        raise HostError(what, remedy="Delete it: the next build makes one that is long enough.")
    return content


def _seal(payload: bytes, secret: bytes, toolchain: str, action: str) -> bytes:
    # Toolchain and action are hex of fixed length, so that no two triples give the same bytes.
    return hmac.digest(secret, f"{toolchain}:{action}:".encode() + payload, hashlib.sha256)
