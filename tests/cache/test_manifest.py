"""A builder's signed list: readers accept what it lists, and nothing else."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tfwright.tools import signing
from tfwright.tools.cache import manifest

pytest.importorskip("securesystemslib")

TOOLCHAIN, OTHER = "a" * 64, "b" * 64
ENTRIES = {"1" * 64: "2" * 64}
Keys = Callable[..., tuple[Path, Path]]


@pytest.fixture
def pair(keys: Keys) -> tuple[Path, Path]:
    return keys()


def test_a_reader_gets_what_the_builder_signed(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    private, public = pair
    manifest.write(tmp_path, TOOLCHAIN, ENTRIES, private)
    assert manifest.read(tmp_path, None, TOOLCHAIN, public) == ENTRIES


def test_later_builds_add_to_the_list(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
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


def test_the_list_of_another_builder_is_not_read(
    tmp_path: Path, keys: Keys
) -> None:
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
