"""Files that are what their names say, or are not there."""

import hashlib
from pathlib import Path

from tests.failing import fails
from tests.making import make_file

from tfwright.errors import SupplyError
from tfwright.vault.store import Store

SHA256 = hashlib.sha256(b"content").hexdigest()


def admitted(store: Store) -> Path:
    with store.admitting(SHA256, "a test") as temporary:
        temporary.write_bytes(b"content")
    return store.path(SHA256)


def test_a_file_with_its_checksum_gets_in_and_is_read_only(store: Store) -> None:
    file = admitted(store)
    assert file.stat().st_mode & 0o777 == 0o444
    assert (store.digests(), store.sizes()) == ([SHA256], {SHA256: 7})
    assert store.verify(SHA256)


def fill(store: Store, content: bytes) -> None:
    with store.admitting(SHA256, "a test") as temporary:
        temporary.write_bytes(content)


def test_other_bytes_do_not_get_in_and_leave_nothing(store: Store) -> None:
    with fails(SupplyError, "a test"):
        fill(store, b"evil")
    assert not store.holds(SHA256)
    store.remove_empty(SHA256)
    assert store.digests() == []
    assert not store.path(SHA256).parent.exists()


def test_a_file_that_was_damaged_is_found_and_not_believed(store: Store) -> None:
    file = admitted(store)
    file.chmod(0o644)
    file.write_bytes(b"damaged")
    assert not store.verify(SHA256)
    assert not file.exists()


def test_a_part_of_a_download_is_not_tidied_away(store: Store) -> None:
    part = make_file(store.path(SHA256).with_name("partial"), b"con")
    store.remove_empty(SHA256)
    assert part.exists()
