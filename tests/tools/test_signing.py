import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from tests.failing import fails
from tests.making import make_file

from tfwright.errors import HostError, WheelError
from tfwright.tools import signing

KIND = "application/json"
Pair = tuple[Path, Path]


@pytest.fixture(
    params=[
        ed25519.Ed25519PrivateKey.generate,
        lambda: ec.generate_private_key(ec.SECP256R1()),
        lambda: rsa.generate_private_key(65537, 2048),
    ]
)
def pair(request: pytest.FixtureRequest, keys: Callable[..., Pair]) -> Pair:
    return keys(private=request.param())


def test_what_a_key_signed_its_public_half_verifies(pair: Pair, tmp_path: Path) -> None:
    private, public = pair
    file = make_file(tmp_path / "envelope", signing.sign(b'{"a": 1}', KIND, private))
    assert signing.verified_payload(file, KIND, public) == (
        b'{"a": 1}',
        signing.signer(private).public_key.keyid,
    )
    assert file.read_bytes().count(b"\n") == 1


def test_another_key_is_told_from_it(pair: Pair, keys: Callable[..., Pair], tmp_path: Path) -> None:
    file = make_file(tmp_path / "envelope", signing.sign(b"{}", KIND, pair[0]))
    with fails(WheelError, "signature") as caught:
        signing.verified_payload(file, KIND, keys("other")[1])
    assert [line.split(":")[0] for line in caught.value.evidence.lines] == [
        "id of the key",
        "signed with",
    ]


@pytest.mark.parametrize("field", ["payload", "payloadType"])
def test_a_changed_envelope_does_not_verify(pair: Pair, tmp_path: Path, field: str) -> None:
    file = make_file(
        tmp_path / "envelope",
        json.dumps({**json.loads(signing.sign(b"{}", KIND, pair[0])), field: "e30K"}),
    )
    with fails(WheelError, "signature"):
        signing.verified_payload(file, KIND, pair[1])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        b'{"payload": "*", "payloadType": 1, "signatures": 3}',
        b'{"payload": "e30K", "payloadType": "x", "signatures": []}',
    ],
)
def test_what_is_no_envelope_is_an_error_and_no_crash(
    keys: Callable[..., Pair], tmp_path: Path, content: bytes
) -> None:
    file = make_file(tmp_path / "envelope", content)
    with pytest.raises(WheelError, match=r"not a DSSE envelope|no valid signature"):
        signing.verified_payload(file, KIND, keys()[1])


def test_a_key_that_only_agrees_on_secrets_cannot_sign(keys: Callable[..., Pair]) -> None:
    with fails(HostError, "private"):
        signing.signer(keys(private=x25519.X25519PrivateKey.generate())[0])


def test_the_public_half_cannot_sign_and_the_private_one_is_not_taken_for_it(
    keys: Callable[..., Pair], tmp_path: Path
) -> None:
    private, public = keys()
    with fails(HostError, "private"):
        signing.signer(public)
    with fails(HostError, "verify", "-in", private, "-pubout"):
        signing.verified_payload(tmp_path, KIND, private)


@pytest.mark.parametrize("name", ["absent.pem", "."])
def test_a_key_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with fails(HostError, "cannot be read"):
        signing.signer(tmp_path / name)
