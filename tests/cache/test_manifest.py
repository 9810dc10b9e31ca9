"""A builder's signed list: readers accept what it lists, and nothing else."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cache.backend import Backend

from tfwright.tools import signing
from tfwright.tools.cache import manifest
from tfwright.tools.cache.server import CacheServer

pytest.importorskip("securesystemslib")

TOOLCHAIN, OTHER = "a" * 64, "b" * 64
ENTRIES = {"1" * 64: "2" * 64}
Keys = Callable[..., tuple[Path, Path]]


@pytest.fixture
def pair(keys: Keys) -> tuple[Path, Path]:
    return keys()


def test_a_reader_gets_what_the_builder_signed(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    private, public = pair
    manifest.write(tmp_path, TOOLCHAIN, ENTRIES, private)
    assert manifest.read(tmp_path, None, TOOLCHAIN, public) == ENTRIES


def test_later_builds_add_to_the_list(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    private, public = pair
    manifest.write(tmp_path, TOOLCHAIN, ENTRIES, private)
    manifest.write(tmp_path, TOOLCHAIN, {"3" * 64: "4" * 64}, private)
    assert len(manifest.read(tmp_path, None, TOOLCHAIN, public)) == 2


def test_a_list_that_was_changed_counts_for_nothing(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    private, public = pair
    path = manifest.write(tmp_path, TOOLCHAIN, ENTRIES, private)
    envelope = json.loads(path.read_bytes())
    envelope["payload"] = envelope["payload"][:-8] + "AAAAAAA="
    path.write_text(json.dumps(envelope), "utf-8")
    assert manifest.read(tmp_path, None, TOOLCHAIN, public) == {}


def test_a_list_of_another_toolchain_counts_for_nothing(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    private, public = pair
    path = manifest.write(tmp_path, TOOLCHAIN, ENTRIES, private)
    path.rename(path.with_name(path.name.replace(TOOLCHAIN, OTHER)))
    assert manifest.read(tmp_path, None, OTHER, public) == {}


def test_the_list_of_another_builder_is_not_read(tmp_path: Path, keys: Keys) -> None:
    (private, _), (_, stranger) = keys("builder"), keys("stranger")
    manifest.write(tmp_path, TOOLCHAIN, ENTRIES, private)
    assert manifest.read(tmp_path, None, TOOLCHAIN, stranger) == {}


def test_a_signature_of_another_kind_of_document_counts_for_nothing(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    private, public = pair
    path = manifest.write(tmp_path, TOOLCHAIN, ENTRIES, private)
    text = json.dumps({"toolchain": TOOLCHAIN, "entries": ENTRIES}).encode()
    path.write_bytes(signing.sign(text, "application/vnd.in-toto+json", private))
    assert manifest.read(tmp_path, None, TOOLCHAIN, public) == {}


class Builder:
    """A host that signs lists and puts them on a server."""

    def __init__(self, folder: Path, key: Path, backend: Backend) -> None:
        self.folder, self.key, self.backend = folder, key, backend
        self.keyid = signing.signer(key).public_key.keyid

    def publish(self, entries: dict[str, str]) -> dict[str, bytes]:
        """Put a longer list on the server; return what the server has after that."""
        server = CacheServer(self.backend.url)
        path = manifest.write(self.folder, TOOLCHAIN, entries, self.key)
        manifest.send(path, server, TOOLCHAIN, self.keyid)
        server.close()
        return dict(self.backend.content)


@pytest.fixture
def builder(tmp_path: Path, pair: tuple[Path, Path], backend: Backend) -> Builder:
    return Builder(tmp_path / "builder", pair[0], backend)


@pytest.fixture
def reader(
    tmp_path: Path, pair: tuple[Path, Path], backend: Backend
) -> Iterator[Callable[[], dict[str, str]]]:
    """Return what reads the list on a host that trusts the builder's key."""
    server = CacheServer(backend.url)
    folder = tmp_path / "reader"
    yield lambda: manifest.read(folder, server, TOOLCHAIN, pair[1])
    server.close()


ADDED = {"3" * 64: "4" * 64}
Reader = Callable[[], dict[str, str]]


@pytest.mark.medium
def test_a_reader_keeps_the_newer_list_when_a_server_gives_an_older_one(
    builder: Builder, reader: Reader, backend: Backend
) -> None:
    older = builder.publish(ENTRIES)
    builder.publish(ADDED)
    assert reader() == {**ENTRIES, **ADDED}
    backend.content = older
    assert reader() == {**ENTRIES, **ADDED}


@pytest.mark.medium
def test_a_builder_whose_clock_went_back_still_writes_the_newer_list(
    builder: Builder, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.publish(ENTRIES)
    reader()
    monkeypatch.setattr("tfwright.tools.cache.manifest.time.time", lambda: 0.0)
    builder.publish(ADDED)
    assert reader() == {**ENTRIES, **ADDED}


@pytest.mark.medium
def test_the_list_of_another_key_in_the_place_of_the_builders_is_not_taken(
    builder: Builder, reader: Reader, backend: Backend, keys: Keys, tmp_path: Path
) -> None:
    builder.publish(ENTRIES)
    reader()
    stranger = Builder(tmp_path / "stranger", keys("stranger")[0], backend)
    # It stands where readers look for the list of the builder.
    stranger.keyid = builder.keyid
    stranger.publish(ADDED)
    assert reader() == ENTRIES


def test_a_list_without_an_end_is_not_received(
    builder: Builder, reader: Reader, backend: Backend
) -> None:
    builder.publish(ENTRIES)

    def endless(content: bytes) -> bytes:
        # The entry that leads to the list is short, and stays as it is.
        return content if len(content) < 200 else content + b" " * (32 << 20)

    backend.change = endless
    # What comes after the length that the entry names is not read, and so not kept.
    assert reader() == ENTRIES


def test_a_list_that_is_longer_than_any_can_be_is_not_asked_for(
    builder: Builder, reader: Reader, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.publish(ENTRIES)
    backend.asked.clear()
    monkeypatch.setattr(manifest, "LARGEST", 10)
    assert reader() == {}
    assert [path for path in backend.asked if "/cas/" in path] == []


def test_a_list_that_a_server_names_and_has_lost_counts_for_nothing(
    builder: Builder, reader: Reader, backend: Backend
) -> None:
    builder.publish(ENTRIES)
    for path in [path for path in backend.content if "/cas/" in path]:
        del backend.content[path]
    assert reader() == {}


@pytest.mark.medium
def test_a_list_that_has_grown_too_long_keeps_the_newest_entries(
    builder: Builder, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "MOST", 3)
    entries = [{f"{number:064x}": "5" * 64} for number in (4, 1, 3, 2)]
    for entry in entries:
        builder.publish(entry)
    assert list(reader()) == [f"{number:064x}" for number in (1, 3, 2)]
    builder.publish(entries[1])
    builder.publish(entries[0])
    assert set(reader()) == {f"{number:064x}" for number in (2, 1, 4)}
