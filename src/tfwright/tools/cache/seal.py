"""Seals on entries of the action cache: who holds the secret wrote this entry, for this action.

A blob's name proves its content. An entry's name is the digest of the *action*, so that nothing
in the entry shows whether it belongs there. A seal does: an HMAC over toolchain, action and entry.
It is one more field of the message, which every server keeps and Bazel ignores.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path

from tfwright.errors import HostError
from tfwright.tools import files
from tfwright.tools.cache import messages

FIELD = 2016
"""Number of the field that holds a seal; the API's own end at 20."""
SIZE = 32
"""Bytes of a secret and of a seal."""
LENGTH = len(messages.field(FIELD, bytes(SIZE)))
"""Bytes of the field."""


@dataclass(frozen=True)
class Seal:
    """What the entries of one toolchain are sealed with."""

    secret: bytes
    toolchain: str
    """Digest of everything that decides about an action's result and that Bazel does not see."""

    def add(self, action: str, payload: bytes) -> bytes:
        """Return an entry as it is stored."""
        # Toolchain and action are hex of fixed length: no two triples give the same bytes.
        head = f"{self.toolchain}:{action}:".encode()
        mac = hmac.digest(self.secret, head + payload, hashlib.sha256)
        return payload + messages.field(FIELD, mac)

    def opened(self, action: str, entry: bytes) -> bytes | None:
        """Return an entry without its seal; None if it was not sealed for this action."""
        payload = entry[:-LENGTH]
        good = hmac.compare_digest(entry, self.add(action, payload))
        return payload if good else None

    def signature(self, text: bytes) -> bytes:
        """Return what proves that this host wrote a text about the toolchain, in hex."""
        return hmac.digest(self.secret, b"verified:" + text, hashlib.sha256).hex().encode()

    def key(self, name: str) -> str:
        """Return a name on a server, where toolchains have no folders of their own."""
        return hashlib.sha256(f"{self.toolchain}:{name}".encode()).hexdigest()


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
