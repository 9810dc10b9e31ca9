"""A disk cache laid out for one build: what it holds, and what is taken in afterwards."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cache.test_build_cache import (
    ACTION,
    OTHER,
    TOOLCHAIN,
    digest,
    entry_of,
    file_of,
    output,
    overwrite,
    put,
    sha256,
)

from tfwright.tools.cache import private_cache, store, wire
from tfwright.tools.cache.build_cache import BuildCache, Trust
from tfwright.tools.cache.private_cache import PrivateCache
from tfwright.tools.cache.store import CacheDirectory


class Build:
    """A build that reads and adds to a disk cache as Bazel does."""

    def __init__(self, cache: BuildCache, private: PrivateCache) -> None:
        self.cache = cache
        self.private = private

    @property
    def offered(self) -> set[str]:
        return {path.name for path in self.private.folder.iterdir()}

    def read(self, action: str) -> None:
        (self.private.folder / f"ac_{action}").read_bytes()

    def add(self, action: str, content: bytes, name: str = "") -> None:
        (self.private.folder / (name or sha256(content))).write_bytes(content)
        entry = self.private.folder / f"ac_{action}"
        entry.write_bytes(output("a.o", content))


@pytest.fixture
def begin(directory: CacheDirectory, trust: Trust, tmp_path: Path) -> Iterator[Callable[[], Build]]:
    """Return what begins a build, as if it were a process of its own."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/a.cc").write_text("int a;\n", "utf-8")
    with ExitStack() as stack:

        def begun() -> Build:
            # Only one build at a time has a private cache.
            stack.close()
            cache = BuildCache(CacheDirectory(directory.root, 1 << 30), trust)
            laying = private_cache.laid_out(cache, tmp_path / "build", tmp_path / "tree")
            private = stack.enter_context(laying)
            assert private
            return Build(cache, private)

        yield begun


Begin = Callable[[], Build]


def test_bazel_finds_links_to_what_is_verified(
    cache: BuildCache, directory: CacheDirectory, begin: Begin
) -> None:
    put(cache, ACTION, b"object", b"log")
    build = begin()
    names = {f"ac_{ACTION}", sha256(b"object"), sha256(b"log"), store.EMPTY}
    assert build.offered == names
    link = build.private.folder / sha256(b"object")
    assert link.samefile(file_of(directory, b"object"))
    assert link.stat().st_mode & 0o777 == store.READ_ONLY


def test_only_what_bazel_read_is_a_hit(cache: BuildCache, begin: Begin) -> None:
    put(cache, ACTION, b"object")
    put(cache, OTHER, b"other")
    build = begin()
    build.read(ACTION)
    build.private.take_in()
    use = build.cache.tally.use(TOOLCHAIN)
    assert (use.lookups, use.hits, use.stored, use.faults) == (1, 1, 0, {})
    assert list(build.cache.written) == [ACTION]
    assert not build.private.folder.exists()


def test_what_bazel_adds_is_there_for_the_next_build(cache: BuildCache, begin: Begin) -> None:
    put(cache, OTHER, b"other")
    build = begin()
    build.add(ACTION, b"object")
    build.private.take_in()
    use = build.cache.tally.use(TOOLCHAIN)
    assert (use.lookups, use.hits, use.stored, use.faults) == (1, 0, 1, {})
    assert f"ac_{ACTION}" in begin().offered


@pytest.mark.parametrize("killed", [False, True])
def test_nothing_is_taken_in_where_a_source_changed_during_the_build(
    cache: BuildCache, begin: Begin, tmp_path: Path, *, killed: bool
) -> None:
    build = begin()
    (tmp_path / "tree/a.cc").write_text("int b;\n", "utf-8")
    build.add(ACTION, b"object")
    if killed:
        assert private_cache.take_left(cache, tmp_path / "build", tmp_path / "tree")
    else:
        build.private.take_in()
        faults = build.cache.tally.use(TOOLCHAIN).faults
        assert faults == {"the tree changed while Bazel ran": 1}
    assert begin().offered == {store.EMPTY}


def test_the_links_that_bazel_makes_in_the_tree_are_no_change(begin: Begin, tmp_path: Path) -> None:
    build = begin()
    for name in ("bazel-bin", "bazel-out", "bazel-tree"):
        (tmp_path / "tree" / name).symlink_to(tmp_path)
    build.add(ACTION, b"object")
    build.private.take_in()
    assert f"ac_{ACTION}" in begin().offered


def test_a_directory_that_an_action_made_is_taken_in_with_its_files(begin: Begin) -> None:
    node = wire.field(1, wire.field(1, b"a") + wire.field(2, digest(b"inner")))
    tree = wire.field(1, node)
    listed = wire.field(1, b"out/dir") + wire.field(3, digest(tree))
    build = begin()
    for content in (b"inner", tree):
        (build.private.folder / sha256(content)).write_bytes(content)
    entry = build.private.folder / f"ac_{ACTION}"
    entry.write_bytes(wire.field(3, listed))
    build.private.take_in()
    names = {f"ac_{ACTION}", sha256(tree), sha256(b"inner"), store.EMPTY}
    assert begin().offered == names


def test_an_added_file_with_other_content_is_not_taken_in(begin: Begin) -> None:
    build = begin()
    build.add(ACTION, b"rotten", name=sha256(b"object"))
    entry = build.private.folder / f"ac_{ACTION}"
    entry.write_bytes(output("a.o", b"object"))
    build.private.take_in()
    assert begin().offered == {store.EMPTY}


@pytest.mark.parametrize(
    "entry", [b"", b"\xff\xff", output("../a.o", b"x"), output("a.o", b"gone")]
)
def test_an_added_result_that_is_none_is_not_taken_in(begin: Begin, entry: bytes) -> None:
    build = begin()
    (build.private.folder / f"ac_{ACTION}").write_bytes(entry)
    (build.private.folder / sha256(b"x")).write_bytes(b"x")
    build.private.take_in()
    taken = f"ac_{ACTION}" in begin().offered
    # A result without any file is one that nothing follows from.
    assert taken == (entry == b"")


def test_what_is_no_file_is_not_taken_in(begin: Begin, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    build = begin()
    link = build.private.folder / sha256(b"secret")
    link.symlink_to(tmp_path / "secret")
    (build.private.folder / f"ac_{OTHER}").symlink_to("nowhere")
    os.mkfifo(build.private.folder / sha256(b"a pipe"))
    (build.private.folder / "tmp").mkdir()
    entry = build.private.folder / f"ac_{ACTION}"
    entry.write_bytes(output("a.o", b"secret"))
    build.private.take_in()
    assert not build.private.spoiled
    assert (tmp_path / "secret").exists()
    assert begin().offered == {store.EMPTY}


@pytest.mark.parametrize("damage", [b"objecT", b"obj", b"object, and more", b""])
def test_a_file_that_was_changed_is_not_laid_out(
    cache: BuildCache, directory: CacheDirectory, begin: Begin, damage: bytes
) -> None:
    put(cache, ACTION, b"object")
    begin().private.take_in()
    overwrite(file_of(directory, b"object"), damage)
    build = begin()
    assert build.offered == {store.EMPTY}
    # Now Bazel runs the action.
    build.add(ACTION, b"object")
    build.private.take_in()
    faults = build.cache.tally.use(TOOLCHAIN).faults
    assert "a file of a result is gone" in faults
    assert f"ac_{ACTION}" in begin().offered


def test_a_change_that_keeps_size_and_time_is_found(
    cache: BuildCache, directory: CacheDirectory, begin: Begin
) -> None:
    put(cache, ACTION, b"object")
    begin().private.take_in()
    path = file_of(directory, b"object")
    before = path.stat()
    overwrite(path, b"tceobj")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert begin().offered == {store.EMPTY}


def test_files_that_changed_places_are_not_laid_out(
    cache: BuildCache, directory: CacheDirectory, begin: Begin
) -> None:
    put(cache, ACTION, b"object")
    put(cache, OTHER, b"other!")
    begin().private.take_in()
    mine, other = (entry_of(directory, action) for action in (ACTION, OTHER))
    mine.rename(mine.with_name("third"))
    other.rename(mine)
    mine.with_name("third").rename(other)
    assert begin().offered == {store.EMPTY}


def test_an_unchanged_file_is_not_read_again(
    cache: BuildCache, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(cache, ACTION, b"object")
    build = begin()
    build.read(ACTION)
    build.private.take_in()
    monkeypatch.delattr(store, "_sha256")
    monkeypatch.delattr(BuildCache, "verified")
    for _ in range(2):
        build = begin()
        assert f"ac_{ACTION}" in build.offered
        build.private.take_in()


def test_a_file_of_several_results_is_read_once(
    cache: BuildCache, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    compare = CacheDirectory._compare

    def counted(*given: object) -> bool:
        read.append(given)
        return compare(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(CacheDirectory, "_compare", counted)
    put(cache, ACTION, b"object")
    put(cache, OTHER, b"object")
    assert {f"ac_{ACTION}", f"ac_{OTHER}"} < begin().offered
    assert len(read) == 1


def test_a_record_that_someone_edited_is_not_believed(
    cache: BuildCache, directory: CacheDirectory, begin: Begin
) -> None:
    put(cache, ACTION, b"object")
    begin().private.take_in()
    path = file_of(directory, b"object")
    before = path.stat().st_ctime_ns
    overwrite(path, b"tceobj")
    now = path.stat()
    (record,) = (directory.root / "verified").glob("*.json")
    text = record.read_text("utf-8").replace(str(before), str(now.st_ctime_ns))
    record.write_text(text, "utf-8")
    assert begin().offered == {store.EMPTY}


@pytest.mark.parametrize("record", [b"", b"{}", b"noise", b"0\n{}"])
def test_a_damaged_record_costs_checksums_only(
    cache: BuildCache, directory: CacheDirectory, begin: Begin, record: bytes
) -> None:
    put(cache, ACTION, b"object")
    begin().private.take_in()
    (path,) = (directory.root / "verified").glob("*.json")
    path.write_bytes(record)
    assert f"ac_{ACTION}" in begin().offered


def test_an_entry_is_laid_out_as_long_as_its_builder_is_trusted(
    directory: CacheDirectory, trust: Trust, cache: BuildCache, tmp_path: Path
) -> None:
    entry = put(cache, ACTION, b"object")
    (tmp_path / "tree").mkdir()
    reader = Trust(trust.toolchain, b"r" * 32, {ACTION: sha256(entry)})

    def offers(trust: Trust) -> bool:
        with private_cache.laid_out(
            BuildCache(directory, trust), tmp_path / "reader", tmp_path / "tree"
        ) as private:
            assert private
            found = (private.folder / f"ac_{ACTION}").exists()
            private.take_in()
            return found

    assert offers(reader)
    assert offers(reader)
    assert not offers(replace(reader, listed={}))
    assert not offers(replace(reader, listed={ACTION: sha256(b"another")}))
    # The entries of others stay: their builds believe them.
    assert offers(trust)


def test_what_was_read_stays_longer_in_the_cache(
    cache: BuildCache, directory: CacheDirectory, begin: Begin
) -> None:
    put(cache, ACTION, b"object")
    put(cache, OTHER, b"other")
    paths = [file_of(directory, content) for content in (b"object", b"other")]
    for path in paths:
        os.utime(path, (1000, 1000))
    build = begin()
    build.read(ACTION)
    build.private.take_in()
    assert paths[0].stat().st_mtime > paths[1].stat().st_mtime == 1000


def test_a_build_that_changed_a_file_of_the_cache_is_spoiled_and_adds_nothing(
    cache: BuildCache, begin: Begin
) -> None:
    put(cache, ACTION, b"object")
    build = begin()
    overwrite(build.private.folder / sha256(b"object"), b"objecT")
    build.add(OTHER, b"made of it")
    build.private.take_in()
    assert build.private.spoiled
    assert begin().offered == {store.EMPTY}


def test_a_build_is_not_spoiled_by_another_that_uses_the_same_files(
    cache: BuildCache, directory: CacheDirectory, begin: Begin
) -> None:
    put(cache, ACTION, b"object")
    build = begin()
    assert cache.lookup(ACTION) is not None
    file_of(directory, b"object").unlink()
    build.private.take_in()
    assert not build.private.spoiled


def test_a_second_build_with_the_toolchain_gets_none(
    directory: CacheDirectory, trust: Trust, begin: Begin, tmp_path: Path
) -> None:
    begin()
    cache = BuildCache(directory, trust)
    with private_cache.laid_out(cache, tmp_path / "second", tmp_path / "tree") as private:
        assert private is None


def test_a_place_on_another_disk_gets_none(
    cache: BuildCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    with private_cache.laid_out(cache, tmp_path / "build", tmp_path / "tree") as private:
        assert private is None


def test_a_disk_that_does_not_show_reading_gets_none(
    cache: BuildCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As on a disk that is mounted with noatime.
    monkeypatch.setattr(Path, "read_bytes", lambda _: b"")
    with private_cache.laid_out(cache, tmp_path / "build", tmp_path / "tree") as private:
        assert private is None


def test_what_a_killed_build_added_is_taken_in_by_the_next(
    directory: CacheDirectory, trust: Trust, begin: Begin, tmp_path: Path
) -> None:
    build = begin()
    build.add(ACTION, b"object")
    cache = BuildCache(directory, replace(trust, toolchain="b" * 64))
    # The compiler has changed since; the entry belongs to the earlier one.
    assert private_cache.take_left(cache, tmp_path / "build", tmp_path / "tree")
    assert directory.actions("b" * 64) == []
    assert f"ac_{ACTION}" in begin().offered


@pytest.mark.parametrize("content", [b"object", b"objecT"])
def test_a_killed_build_is_believed_if_its_files_still_are_what_they_were(
    cache: BuildCache, begin: Begin, tmp_path: Path, content: bytes
) -> None:
    put(cache, ACTION, b"object")
    build = begin()
    overwrite(build.private.folder / sha256(b"object"), content)
    build.add(OTHER, b"made of it")
    believed = private_cache.take_left(cache, tmp_path / "build", tmp_path / "tree")
    assert believed == (content == b"object")
    assert (f"ac_{OTHER}" in begin().offered) == believed
