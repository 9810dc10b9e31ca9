"""Seals on entries, and the secret that they are made with."""

from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file

from tfwright.errors import HostError
from tfwright.tools.cache.store import SEAL_SIZE, Seal, read_secret

SEAL = Seal(b"s" * 32, "t" * 64)


def test_a_seal_holds_for_its_entry_toolchain_and_action_only() -> None:
    entry = SEAL.add("a" * 64, b"payload")
    assert SEAL.unseal("a" * 64, entry) == b"payload"
    assert SEAL.unseal("b" * 64, entry) is None
    assert SEAL.unseal("a" * 64, b"other" + entry) is None
    assert Seal(SEAL.secret, "u" * 64).unseal("a" * 64, entry) is None
    assert Seal(b"x" * 32, SEAL.toolchain).unseal("a" * 64, entry) is None


@pytest.mark.parametrize("entry", [b"payload", b"", b"x" * 100])
def test_an_entry_without_a_seal_is_not_believed(entry: bytes) -> None:
    assert SEAL.unseal("a" * 64, entry) is None


def test_a_secret_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "cache-secret"
    made = read_secret(file)
    assert len(made) >= SEAL_SIZE
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_secret(file) == made


def test_a_short_secret_is_refused_until_it_is_deleted(tmp_path: Path) -> None:
    file = make_file(tmp_path / "cache-secret", "password\n")
    with fails(HostError, file, 8, SEAL_SIZE):
        read_secret(file)
    file.unlink()
    assert len(read_secret(file)) >= SEAL_SIZE


def test_a_secret_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with fails(HostError, tmp_path / "file/cache-secret"):
        read_secret(tmp_path / "file/cache-secret")
