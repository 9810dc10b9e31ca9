"""A builder's signed list of entries, so that a stolen cache server poisons no reader.

After a good build the builder signs which entries it used and wrote: action = SHA-256 of the entry.
Who trusts its public key accepts exactly these. A server has only entries and blobs, so that the
list is a blob, and an entry under a name that reader and builder know points to it.
"""

import hashlib
import json
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tfwright.errors import TfwrightError
from tfwright.tools import files, json_text, signing
from tfwright.tools.cache import action_result
from tfwright.tools.cache.action_result import SHA256, Blob
from tfwright.tools.cache.server import CacheServer, ServerFaultError
from tfwright.tools.cache.wire import MalformedMessageError

KIND = "application/vnd.tfwright.cache-manifest+json"
LARGEST = signing.LARGEST
"""Bytes of a list: one of TensorFlow's has half a megabyte."""
MOST = 80_000
"""Entries of a list, some 180 bytes each: more of them would exceed LARGEST."""


@dataclass(frozen=True)
class _Listing:
    """What a signed list says."""

    entries: dict[str, str]
    """Action = SHA-256 of its entry, the newest last."""
    written: int
    """Seconds since 1970, by the clock of the builder."""


_NONE = _Listing({}, 0)


def write(root: Path, toolchain: str, entries: Mapping[str, str], key: Path) -> Path:
    """Sign the entries of a build, with those of the builder's earlier ones, and return the file.

    The oldest entries are left out of a list that would become too long to be read.
    Raises HostError if the private key in the file `key` cannot sign.
    """
    path = _path(root, signing.signer(key).public_key.keyid, toolchain)
    before = _unverified(path)
    # Readers may still ask for the entries of earlier builds: the list grows.
    listed = before.entries
    for action, digest in entries.items():
        # An entry that is used again counts as new.
        listed.pop(action, None)
        listed[action] = digest
    payload = {
        "toolchain": toolchain,
        "entries": dict(list(listed.items())[-MOST:]),
        # Readers keep the newer list, and a clock may have been set back.
        "written": max(int(time.time()), before.written + 1),
    }
    text = json.dumps(payload, separators=(",", ":"))
    files.write(path, signing.sign(text.encode(), KIND, key))
    return path


def send(path: Path, server: CacheServer, toolchain: str, keyid: str) -> None:
    """Put a list on a server. Raises ServerFaultError, OSError."""
    blob = Blob(files.sha256(path), path.stat().st_size)
    server.send("cas", blob.sha256, path)
    server.send("ac", _name(toolchain, keyid), action_result.pointing_to(blob))


def read(root: Path, server: CacheServer | None, toolchain: str, key: Path) -> dict[str, str]:
    """Return what the holder of a public key lists for a toolchain; empty where no list is valid.

    The newer of the server's list and the one that was kept counts: a server could give an older
    one. Raises HostError if the key cannot be used.
    """
    keyid = signing.public_id(key)
    kept = _path(root, keyid, toolchain)
    found = _verified(kept, toolchain, key) if kept.is_file() else _NONE
    with tempfile.TemporaryDirectory(prefix="tfwright-") as room:
        received = Path(room, "manifest.json")
        if server and _receive(server, _name(toolchain, keyid), received):
            given = _verified(received, toolchain, key)
            if given.written > found.written:
                # A full disk does not make hits misses.
                with suppress(OSError):
                    files.write(kept, received.read_bytes())
                return given.entries
    return found.entries


def _receive(server: CacheServer, name: str, to: Path) -> bool:
    """Get a server's list; say whether there was one."""
    try:
        entry = server.entry(name)
        blobs = action_result.read(entry).blobs if entry else ()
        # The size is the server's claim; a huge one is not downloaded.
        if not blobs or blobs[0].size > LARGEST:
            return False
        size = blobs[0].size
        with server.blob(blobs[0].sha256, size) as stream, to.open("wb") as output:
            # No more than was claimed, however much comes.
            if stream:
                output.writelines(files.pieces(stream.read, size))
    except (ServerFaultError, MalformedMessageError, OSError):
        return False
    return True


def _verified(file: Path, toolchain: str, key: Path) -> _Listing:
    """Return the list in a file if the key signed it for this toolchain."""
    try:
        payload, _ = signing.verified(file, KIND, key)
        content = json_text.parsed(payload)
    except (TfwrightError, ValueError):
        return _NONE
    # A server could answer with the builder's valid list for another compiler.
    if not isinstance(content, dict) or content.get("toolchain") != toolchain:
        return _NONE
    return _listing(content)


def _unverified(path: Path) -> _Listing:
    """Return what this builder listed before; its own file, in its own directory."""
    try:
        import base64

        payload = base64.b64decode(json_text.parsed(files.content(path))["payload"])
        content = json_text.parsed(payload)
    except (OSError, ValueError, LookupError, TypeError):
        content = None
    # A list of its own: `write` adds to it.
    return _listing(content if isinstance(content, dict) else {})


def _listing(content: Mapping[str, object]) -> _Listing:
    """Read what was signed, or what this host wrote."""
    written = content.get("written")
    return _Listing(valid(content.get("entries")), written if isinstance(written, int) else 0)


def valid(listed: object) -> dict[str, str]:
    """Return those of a list's entries that are digests, whatever else it holds."""
    if not isinstance(listed, dict):
        return {}
    texts = ((action, digest) for action, digest in listed.items() if isinstance(digest, str))
    return {
        action: digest
        for action, digest in texts
        if SHA256.fullmatch(action) and SHA256.fullmatch(digest)
    }


def _path(root: Path, keyid: str, toolchain: str) -> Path:
    return root / "manifests" / f"{keyid[:16]}-{toolchain}.json"


def _name(toolchain: str, keyid: str) -> str:
    """Return under which name the list's entry stands on a server."""
    return hashlib.sha256(f"manifest:{toolchain}:{keyid}".encode()).hexdigest()
