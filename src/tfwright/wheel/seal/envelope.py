"""The signed form of the statement next to a wheel: one line, as in-toto's bundles have them.

https://github.com/in-toto/attestation/blob/main/spec/v1/bundle.md and envelope.md. The wheel knows
nothing of it: signed or not, by whom and when, its bytes are the same.
"""

from pathlib import Path

from tfwright.errors import WheelError
from tfwright.tools import files, json_text, signing
from tfwright.wheel.seal import statement

SUFFIX = ".intoto.jsonl"
"""After the whole name of the wheel's file."""
KIND = "application/vnd.in-toto+json"
FORGED = "Do not trust the wheel. Download it again, with the files next to it, from its source."


def write(payload: bytes, key: Path) -> bytes:
    """Return the envelope of a statement, signed with a private key.

    Raises HostError if the key cannot sign.
    """
    return signing.sign(payload, KIND, key)


def verify(wheel: Path, key: Path) -> str:
    """Insist that a key's holder signed the statement about exactly this wheel; return its id.

    Raises HostError if the key cannot be used, WheelError if the envelope next to the wheel is
    missing or not signed with it, is about another wheel, or says something else than the plain
    statement, where that is next to it.
    """
    payload, keyid = signing.verified(wheel.with_name(wheel.name + SUFFIX), KIND, key)
    try:
        # A statement may be about several files; even a trusted signer may write nonsense.
        subjects = [subject["digest"]["sha256"] for subject in json_text.parsed(payload)["subject"]]
    except (ValueError, LookupError, TypeError) as fault:
        raise WheelError(
            "What was signed is not an in-toto statement about a file",
            remedy="Ask whoever signed it.",
        ) from fault
    # A valid signature alone proves little: it may be about another wheel.
    if files.sha256(wheel) not in subjects:
        raise WheelError(
            f"{wheel.name} is not the wheel that was signed: its SHA-256 is another one",
            remedy=FORGED,
        )
    # Tools that do not know envelopes read the plain file, so the two must agree.
    plain = wheel.with_name(wheel.name + statement.SUFFIX)
    if plain.is_file() and plain.read_bytes() != payload:
        raise WheelError(f"{plain.name} is not the statement that was signed", remedy=FORGED)
    return keyid
