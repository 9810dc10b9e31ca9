"""A disk cache laid out for one build: what it holds, and what is taken in afterwards."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cache.builds import (
    ACTION,
    EMPTY,
    OTHER,
    SEAL,
    TOOLCHAIN,
    Begin,
    digest,
    entry_of,
    file_of,
    output,
    overwrite,
    sha256,
)

from tfwright.tools.cache import messages, private
from tfwright.tools.cache import store as store_module
from tfwright.tools.cache.store import CacheStore

DAMAGES = [b"objecT", b"obj", b"object, and more", b""]


@pytest.mark.parametrize("flat", [True, False], ids=["before 2.2", "from 2.2"])
def test_what_bazel_adds_is_there_for_the_next_build_as_links_and_a_hit(
    begin: Begin, *, flat: bool
) -> None:
    build = begin(flat=flat)
    build.add(ACTION, b"object", b"log", b"")
    build.add(OTHER, b"object")
    use = build.end()
    assert (use.lookups, use.hits, use.stored, use.faults) == (2, 0, 2, {})
    assert not build.private.folder.exists()
    build = begin(flat=flat)
    assert build.offered == {ACTION, OTHER, sha256(b"object"), sha256(b"log"), EMPTY}
    link = build.blob(sha256(b"object"))
    assert link.samefile(file_of(build.store, b"object"))
    assert link.stat().st_mode & 0o777 == store_module.READ_ONLY
    build.read(ACTION)
    use = build.end()
    assert (use.lookups, use.hits, use.stored, use.faults) == (1, 1, 0, {})
    assert build.private.actions == [ACTION]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("flat", [True, False])
def test_a_bazel_that_touches_what_it_takes_spoils_nothing(begin: Begin, *, flat: bool) -> None:
    for _ in range(2):
        build = begin(flat=flat)
        build.read(ACTION)
        # As Bazel 7 does with what it has found.
        for path in (build.entry(ACTION), build.blob(sha256(b"object"))):
            os.utime(path)
        assert build.end().hits == 1
        assert not build.private.spoiled


@pytest.mark.parametrize("killed", [False, True])
def test_nothing_is_taken_in_where_a_source_changed_during_the_build(
    begin: Begin, tree: Path, *, killed: bool
) -> None:
    build = begin()
    (tree / "a.cc").write_text("int b;\n", "utf-8")
    build.add(ACTION, b"object")
    if killed:
        place = build.private.folder.parent
        assert private.recover_left(build.store, SEAL.secret, place, tree)
    else:
        assert build.end().faults == {"the tree changed while Bazel ran": 1}
    assert begin().offered == {EMPTY}


def test_the_links_that_bazel_makes_in_the_tree_are_no_change(begin: Begin, tree: Path) -> None:
    build = begin()
    for name in ("bazel-bin", "bazel-out", "bazel-tree"):
        (tree / name).symlink_to(tree.parent)
    build.add(ACTION, b"object")
    build.end()
    assert ACTION in begin().offered


def test_a_directory_that_an_action_made_is_taken_in_with_its_files(begin: Begin) -> None:
    node = messages.encode_field(
        1, messages.encode_field(1, b"a") + messages.encode_field(2, digest(b"inner"))
    )
    made = messages.encode_field(1, node)
    listed = messages.encode_field(1, b"out/dir") + messages.encode_field(3, digest(made))
    build = begin()
    build.add(ACTION, b"inner", made, payload=messages.encode_field(3, listed))
    build.end()
    assert begin().offered == {ACTION, sha256(made), sha256(b"inner"), EMPTY}
    file_of(build.store, b"inner").unlink()
    assert ACTION not in begin().offered


def test_an_added_file_with_other_content_is_not_taken_in(begin: Begin) -> None:
    build = begin()
    build.add(ACTION, payload=output("a.o", b"object"))
    build.blob(sha256(b"object")).write_bytes(b"rotten")
    assert build.end().faults == {"Bazel stored a file that changed meanwhile": 1}
    assert begin().offered == {EMPTY}


@pytest.mark.parametrize(
    "payload",
    [
        b"\xff\xff",
        b"\x20\x01",  # the action failed
        output("../a.o", b"x"),
        output("/etc/passwd", b"x"),
        output("a/../../b", b"x"),
        output("a.o", b"gone"),
    ],
)
def test_an_added_result_that_cannot_be_used_is_not_taken_in(begin: Begin, payload: bytes) -> None:
    build = begin()
    build.add(ACTION, b"x", payload=payload)
    assert sum(build.end().faults.values()) == 1
    assert begin().offered == {EMPTY}


def test_a_result_without_any_file_is_taken_in(begin: Begin) -> None:
    build = begin()
    build.add(ACTION)
    build.end()
    assert begin().offered == {ACTION, EMPTY}


def test_what_is_no_file_is_not_taken_in(begin: Begin, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    build = begin()
    build.blob(sha256(b"secret")).symlink_to(tmp_path / "secret")
    build.entry(OTHER).symlink_to("nowhere")
    os.mkfifo(build.blob(sha256(b"a pipe")))
    (build.private.folder / "tmp").mkdir()
    build.add(ACTION, payload=output("a.o", b"secret"))
    build.end()
    assert not build.private.spoiled
    assert (tmp_path / "secret").exists()
    assert begin().offered == {EMPTY}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_was_changed_is_not_laid_out_and_is_replaced(
    store: CacheStore, begin: Begin, damage: bytes
) -> None:
    begin().end()
    overwrite(file_of(store, b"object"), damage)
    build = begin()
    assert build.offered == {EMPTY}
    # Now Bazel runs the action.
    build.add(ACTION, b"object")
    assert build.end().faults == {"a file had other content than its name says": 1}
    assert ACTION in begin().offered


def test_a_file_that_was_removed_makes_the_action_a_miss(store: CacheStore, begin: Begin) -> None:
    file_of(store, b"object").unlink()
    build = begin()
    build.add(ACTION, b"object")
    assert build.end().faults == {"a file of a result is gone": 1}
    assert ACTION in begin().offered


def test_a_change_that_keeps_size_and_time_is_found(store: CacheStore, begin: Begin) -> None:
    begin().end()
    path = file_of(store, b"object")
    before = path.stat()
    overwrite(path, b"tceobj")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert begin().offered == {EMPTY}


def test_entries_that_changed_places_are_not_laid_out(begin: Begin) -> None:
    build = begin()
    build.add(ACTION, b"object")
    build.add(OTHER, b"other!")
    build.end()
    mine, other = (entry_of(build.store, action) for action in (ACTION, OTHER))
    mine.rename(mine.with_name("third"))
    other.rename(mine)
    mine.with_name("third").rename(other)
    assert begin().offered == {EMPTY}


@pytest.mark.parametrize("keep", [0, 1, 40, -1])
def test_an_entry_that_is_cut_off_is_not_laid_out(
    store: CacheStore, begin: Begin, keep: int
) -> None:
    path = entry_of(store, ACTION)
    overwrite(path, path.read_bytes()[:keep])
    build = begin()
    assert build.offered == {EMPTY}
    build.add(ACTION, b"object")
    assert build.end().faults == {"an entry was not written by a trusted builder": 1}


@pytest.mark.parametrize("copied", [False, True])
def test_an_entry_of_another_toolchain_is_a_miss(
    store: CacheStore, begin: Begin, *, copied: bool
) -> None:
    other = replace(SEAL, toolchain="b" * 64)
    if copied:
        store.keep_entry("b" * 64, ACTION, store.entry(TOOLCHAIN, ACTION))
    assert begin(seal=other).offered == {EMPTY}


@pytest.mark.usefixtures("store")
def test_entries_are_believed_by_hosts_with_the_same_secret_only(begin: Begin) -> None:
    assert begin(seal=replace(SEAL, secret=b"x" * 32)).offered == {EMPTY}
    # The entries of others stay: their builds believe them.
    assert ACTION in begin().offered


@pytest.mark.usefixtures("store")
def test_an_unchanged_file_is_read_once(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    build = begin()
    build.read(ACTION)
    build.end()
    monkeypatch.delattr(CacheStore, "compare")
    for _ in range(2):
        build = begin()
        assert ACTION in build.offered
        build.end()


def test_a_record_that_someone_edited_is_not_believed(store: CacheStore, begin: Begin) -> None:
    begin().end()
    path = file_of(store, b"object")
    before = path.stat().st_ctime_ns
    overwrite(path, b"tceobj")
    (record,) = (store.root / "verified").glob("*.json")
    text = record.read_text("utf-8").replace(str(before), str(path.stat().st_ctime_ns))
    record.write_text(text, "utf-8")
    assert begin().offered == {EMPTY}


@pytest.mark.parametrize("text", [b"[]", b'{"a": 1}', b'{"a": [1]}'])
@pytest.mark.parametrize("record", [b"", b"{}", b"noise", b"0\n{}", b"as of another version"])
def test_a_record_that_cannot_be_read_costs_checksums_only(
    store: CacheStore, begin: Begin, record: bytes, text: bytes
) -> None:
    begin().end()
    (path,) = (store.root / "verified").glob("*.json")
    signed = SEAL.signature(text) + b"\n" + text
    path.write_bytes(signed if record == b"as of another version" else record)
    assert ACTION in begin().offered


def test_what_was_read_stays_longer_in_the_cache(begin: Begin) -> None:
    build = begin()
    build.add(ACTION, b"object")
    build.add(OTHER, b"other")
    build.end()
    paths = [file_of(build.store, content) for content in (b"object", b"other")]
    for path in paths:
        os.utime(path, (1000, 1000))
    build = begin()
    build.read(ACTION)
    build.end()
    assert paths[0].stat().st_mtime > paths[1].stat().st_mtime == 1000


def test_the_least_recently_used_files_go_first(begin: Begin) -> None:
    long_ago = time.time() - 2 * store_module.YOUNG_SECONDS
    contents = [bytes([index]) * 1000 for index in range(4)]
    build = begin(limit=5000)
    for content in contents:
        build.add(sha256(content), content)
    build.end()
    for age, content in enumerate(contents):
        for path in (file_of(build.store, content), entry_of(build.store, sha256(content))):
            os.utime(path, (long_ago + age, long_ago + age))
    build = begin(limit=5000)
    build.add(ACTION, b"x" * 1000)
    build.end()
    offered = begin().offered
    assert sha256(contents[0]) not in offered
    assert {ACTION, sha256(contents[3])} < offered


def test_what_a_build_just_used_is_not_removed(begin: Begin) -> None:
    contents = [bytes([index]) * 1000 for index in range(4)]
    build = begin(limit=2500)
    for content in contents:
        build.add(sha256(content), content)
    assert build.end().faults == {
        "the cache's directory: it is full, and everything in it is in use": 2
    }
    assert begin().offered == {EMPTY, *map(sha256, contents[:2])}


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("change", [lambda content: b"X" + content[1:], lambda c: c + b"\n"])
@pytest.mark.parametrize("what", ["blob", "entry"])
def test_a_build_that_changed_what_was_laid_out_is_spoiled_and_adds_nothing(
    begin: Begin, what: str, change: Callable[[bytes], bytes]
) -> None:
    build = begin()
    path = build.blob(sha256(b"object")) if what == "blob" else build.entry(ACTION)
    overwrite(path, change(path.read_bytes()))
    build.add(OTHER, b"made of it")
    build.end()
    assert build.private.spoiled
    assert OTHER not in begin().offered


@pytest.mark.usefixtures("store")
def test_builds_at_the_same_time_count_their_own_hits_and_spoil_nothing(begin: Begin) -> None:
    first, second = begin(), begin()
    first.read(ACTION)
    second.add(OTHER, b"other")
    assert (first.end().hits, second.end().hits) == (1, 0)
    assert not first.private.spoiled
    assert not second.private.spoiled
    assert {ACTION, OTHER} < begin().offered


def test_a_build_is_not_spoiled_where_another_removes_what_it_was_given(
    store: CacheStore, begin: Begin
) -> None:
    build = begin()
    file_of(store, b"object").unlink()
    build.end()
    assert not build.private.spoiled


def test_a_disk_that_does_not_show_reading_is_refused(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As on a disk that is mounted with noatime.
    monkeypatch.setattr(Path, "read_bytes", lambda _: b"")
    with pytest.raises(OSError, match="noatime"):
        begin()


@pytest.mark.parametrize("flat", [True, False])
def test_what_a_killed_build_added_is_taken_in_by_the_next(
    store: CacheStore, begin: Begin, tree: Path, *, flat: bool
) -> None:
    build = begin(flat=flat)
    build.add(OTHER, b"other")
    # It says itself to which toolchain it belongs: the compiler may have changed since.
    assert private.recover_left(store, SEAL.secret, build.private.folder.parent, tree)
    assert {ACTION, OTHER} < begin().offered


def test_a_build_that_was_killed_before_bazel_began_is_believed(
    store: CacheStore, begin: Begin, tree: Path
) -> None:
    build = begin()
    build.private.folder.with_suffix(private.LAID_OUT).unlink()
    assert private.recover_left(store, SEAL.secret, build.private.folder.parent, tree)
    assert ACTION in begin().offered


@pytest.mark.parametrize("content", [b"object", b"objecT"])
def test_a_killed_build_is_believed_if_its_files_still_are_what_they_were(
    store: CacheStore, begin: Begin, tree: Path, content: bytes
) -> None:
    build = begin()
    overwrite(build.blob(sha256(b"object")), content)
    build.add(OTHER, b"made of it")
    believed = private.recover_left(store, SEAL.secret, build.private.folder.parent, tree)
    assert believed == (content == b"object")
    assert (OTHER in begin().offered) == believed
