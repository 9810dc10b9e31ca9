"""Signatures: DSSE envelopes, by securesystemslib.

It is an extra of tfwright, which only those who sign or verify need.

https://github.com/secure-systems-lab/dsse/blob/master/envelope.md
"""

import importlib.util
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.documents import filesystem
from tfwright.errors import HostError, WheelError
from tfwright.printable import shell_word
from tfwright.tools import json_text

if TYPE_CHECKING:
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import CryptoSigner

_NEW_KEY = (
    "Name a private key in PEM; this makes one: (umask 077; openssl genpkey -algorithm ed25519 "
    "-out key.pem)"
)
LARGEST = 16 * 1024**2
"""Bytes of a key or an envelope that are read."""


def sign(payload: bytes, kind: str, key: Path) -> bytes:
    """Return the signed envelope of a payload of the media type `kind`, as a line of JSON.

    Raises what `signer` raises.
    """
    from securesystemslib.dsse import Envelope

    # DSSE signs the length and type of the payload with it, so that neither can be exchanged.
    envelope = Envelope(payload, kind, {})
    envelope.sign(signer(key))
    # One line: envelopes of several wheels make a JSON Lines file.
    return json.dumps(envelope.to_dict(), separators=(",", ":")).encode() + b"\n"


def signer(key: Path) -> "CryptoSigner":
    """Read a private key.

    Raises HostError if it cannot sign, or securesystemslib is not installed.
    """
    with _key_content(key, "a private key that can sign", _NEW_KEY) as content:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
        from securesystemslib.signer import CryptoSigner

        try:
            return CryptoSigner(load_pem_private_key(content, None))
        except TypeError as fault:
            # cryptography raises it for a missing passphrase, and for nothing else here.
            raise HostError(
                f"The key {key} is encrypted",
                remedy="A build asks for no passphrase. Name a key without one, which only you can "
                f"read: (umask 077; openssl pkey -in {shell_word(str(key))} -out plain.pem)",
            ) from fault


def verified_payload(file: Path, kind: str, key: Path) -> tuple[bytes, str]:
    """Return the payload of a file's envelope, signed by the holder of a key, and the key's id.

    Raises HostError if the key cannot be used or securesystemslib is not installed, WheelError if
    the envelope is none, holds another kind of payload, or has no valid signature of this key.
    """
    public_half = f"openssl pkey -in {shell_word(str(key))} -pubout -out public.pem"
    remedy = f"Name the public key in PEM; of a private one, this writes it: {public_half}"
    with _key_content(key, "a public key that can verify", remedy) as content:
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
        from securesystemslib.signer import SSlibKey

        public = SSlibKey.from_crypto(load_pem_public_key(content))
    from securesystemslib.exceptions import VerificationError

    envelope = _read_envelope(file)
    try:
        # A threshold of one: an envelope may hold signatures of other keys, which prove nothing.
        envelope.verify([public], 1)
    except VerificationError as fault:
        raise WheelError(
            f"{file.name} has no valid signature of the key {key}",
            remedy="It was changed, or another key signed it: do not trust the wheel, or name the "
            "public key of whoever made it.",
            # The ids tell a wrong key from a changed envelope.
            where=file,
            lines=[
                f"id of the key: {public.keyid}",
                *(f"signed with:   {keyid!r}" for keyid in envelope.signatures),
            ],
        ) from fault
    # The signature covers the payload's type: an envelope of another kind proves
    # nothing here.
    if envelope.payload_type != kind:
        raise WheelError(
            f"{file.name} holds {envelope.payload_type!r}, not {kind}",
            remedy="Bring the envelope that was made with the wheel.",
        )
    return envelope.payload, public.keyid


def _read_envelope(file: Path) -> "Envelope":
    from securesystemslib.dsse import Envelope

    try:
        content = _read(file)
    except OSError as fault:
        raise WheelError(
            f"The wheel's signature {file} cannot be read: {fault.strerror}",
            remedy="Bring it from where the wheel is from; without a signing key none is made.",
        ) from fault
    try:
        return Envelope.from_dict(json_text.parse(content))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as fault:
        # from_dict() checks no types: each kind of damage has an exception of its own.
        raise WheelError(
            f"{file.name} is not a DSSE envelope: {_first_sentence(fault)}",
            remedy="Bring it again from where the wheel is from.",
        ) from fault


@contextmanager
def _key_content(path: Path, wanted: str, remedy: str) -> Iterator[bytes]:
    """Give what a key's file holds; a block that cannot read it as what is wanted ends so."""
    # find_spec looks for them without the cost of an import.
    if any(importlib.util.find_spec(name) is None for name in ("securesystemslib", "cryptography")):
        raise HostError(
            "securesystemslib, which signs and verifies, is not installed",
            remedy="Run 'python -m pip install -r requirements-sign.txt' in .venv.",
        )
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        yield _read(path)
    except OSError as fault:
        raise HostError(
            f"The key {path} cannot be read: {fault.strerror}",
            remedy="Check the path and its permissions.",
        ) from fault
    except (ValueError, UnsupportedAlgorithm) as fault:
        raise HostError(
            f"{path} is not {wanted}: {_first_sentence(fault)}", remedy=remedy
        ) from fault


def _read(path: Path) -> bytes:
    with filesystem.open_file(path) as stream:
        return stream.read(LARGEST)


def _first_sentence(fault: Exception) -> str:
    """Return the first sentence of what a library says."""
    return str(fault).partition(". ")[0].partition("\n")[0] or type(fault).__name__
