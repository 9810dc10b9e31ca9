"""Seals on entries, and the secret that they are made with."""

from pathlib import Path

import pytest

from tfwright.errors import HostError
from tfwright.tools.cache import seal

SECRET = b"s" * 32


def test_a_seal_holds_for_its_entry_toolchain_and_action_only() -> None:
    entry = seal.add(b"payload", SECRET, "t" * 64, "a" * 64)
    payload, found = seal.remove(entry)
    assert payload == b"payload"
    assert seal.holds(payload, found, SECRET, "t" * 64, "a" * 64)
    assert not seal.holds(b"other", found, SECRET, "t" * 64, "a" * 64)
    assert not seal.holds(payload, found, SECRET, "u" * 64, "a" * 64)
    assert not seal.holds(payload, found, SECRET, "t" * 64, "b" * 64)
    assert not seal.holds(payload, found, b"x" * 32, "t" * 64, "a" * 64)


def test_an_entry_without_a_seal_is_left_whole() -> None:
    assert seal.remove(b"payload") == (b"payload", b"")


def test_a_secret_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "cache-secret"
    made = seal.secret(file)
    assert len(made) >= seal.SIZE
    assert file.stat().st_mode & 0o777 == 0o600
    assert seal.secret(file) == made


def test_a_short_secret_is_refused_until_it_is_deleted(tmp_path: Path) -> None:
    file = tmp_path / "cache-secret"
    file.write_text("password\n", "ascii")
    with pytest.raises(HostError, match="has 8 bytes; 32 is the least") as found:
        seal.secret(file)
    assert found.value.remedy.startswith("Delete it")
    file.unlink()
    assert len(seal.secret(file)) >= seal.SIZE


def test_a_secret_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HostError, match="cannot be read or made"):
        seal.secret(tmp_path / "file/cache-secret")
