"""A directory as one digest: what changes it, what does not, and what links are."""

import ctypes
import errno
import os
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.making import make_file

from tfwright.tools import trees


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    make_file(made / "inner/file", "one")
    (made / "program").write_text("two", "utf-8")
    (tmp_path / "outside").write_text("three", "utf-8")
    (made / "link").symlink_to(tmp_path / "outside")
    return made


def flip(root: Path) -> None:
    """Change a byte, and put the old times back as well as anybody can."""
    path = root / "inner/file"
    before = path.stat()
    path.write_text("two", "utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_link(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("program")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a byte": flip,
    "a new file": lambda root: (root / "inner/new").touch(),
    "a new directory": lambda root: (root / "empty").mkdir(),
    "a lost file": lambda root: (root / "program").unlink(),
    "another name": lambda root: (root / "program").rename(root / "other"),
    "a mode": lambda root: (root / "program").chmod(0o755),
    "a link": replace_link,
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_shows_at_a_glance_and_in_the_content(root: Path, change: str) -> None:
    before = trees.state_digest(root), trees.content_digest(root)
    CHANGES[change](root)
    after = trees.state_digest(root), trees.content_digest(root)
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_touching_a_file_changes_the_glance_and_not_the_content(root: Path) -> None:
    before = trees.state_digest(root), trees.content_digest(root)
    os.utime(root / "program")
    assert (trees.state_digest(root) != before[0], trees.content_digest(root) == before[1]) == (
        True,
        True,
    )


def test_the_content_does_not_depend_on_the_place(root: Path) -> None:
    before = trees.content_digest(root)
    assert trees.content_digest(root.rename(root.with_name("elsewhere"))) == before


def test_what_a_link_leads_to_counts_only_where_links_are_followed(root: Path) -> None:
    kept, followed = trees.content_digest(root), trees.content_digest(root, follow=True)
    seen = trees.state_digest(root, follow=True)
    (root.parent / "outside").write_text("four", "utf-8")
    assert trees.content_digest(root) == kept
    assert trees.content_digest(root, follow=True) != followed
    assert trees.state_digest(root, follow=True) != seen


def test_links_that_lead_nowhere_or_in_a_circle_end(root: Path) -> None:
    (root / "nowhere").symlink_to("gone")
    (root / "inner/circle").symlink_to(root / "inner")
    assert trees.content_digest(root, follow=True)


def test_paths_that_are_left_out_do_not_count(root: Path) -> None:
    before = trees.content_digest(root, without=("inner/file",))
    flip(root)
    assert trees.content_digest(root, without=("inner/file",)) == before


def test_replacing_a_path_that_is_left_out_does_not_show_at_a_glance(root: Path) -> None:
    before = trees.state_digest(root, without=("inner/file",))
    (root / "new").write_text("other", "utf-8")
    (root / "new").replace(root / "inner/file")
    assert trees.state_digest(root, without=("inner/file",)) == before


def test_a_directory_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        trees.state_digest(tmp_path / "gone")


def test_only_files_that_can_be_looked_at_are_listed(root: Path) -> None:
    (root / "broken").symlink_to("gone")
    os.mkfifo(root / "pipe")
    own = {path.name for path, _ in trees.files_below(root)}
    followed = {path.name for path, _ in trees.files_below(root, follow=True)}
    assert own == {"program", "file"}
    assert followed == {"program", "file", "link"}


def test_a_directory_that_goes_while_it_is_listed_ends_the_list(root: Path) -> None:
    listed = trees.files_below(root)
    next(listed)
    shutil.rmtree(root)
    assert len(list(listed)) <= 1


def failing_disk(*_: object, **__: object) -> SimpleNamespace:
    """Return a C library whose syncfs says that the disk lost what was written."""

    def syncfs(_: int) -> int:
        ctypes.set_errno(errno.EIO)
        return -1

    return SimpleNamespace(syncfs=syncfs)


@pytest.mark.medium
def test_outputs_that_the_disk_could_not_take_are_not_vouched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees.sync_disk(tmp_path)
    monkeypatch.setattr(ctypes, "CDLL", failing_disk)
    with pytest.raises(OSError, match="Input/output error") as found:
        trees.sync_disk(tmp_path)
    assert found.value.filename == str(tmp_path)


def test_where_one_disk_cannot_be_waited_for_all_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[str] = []
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(os, "sync", lambda: waited.append("all"))
    trees.sync_disk(tmp_path)
    assert waited == ["all"]


def test_a_link_to_itself_is_taken_for_a_link_and_an_unreadable_one_is_an_error(root: Path) -> None:
    (root / "self").symlink_to("self")
    before = trees.state_digest(root, follow=True)
    (root / "self").unlink()
    assert trees.state_digest(root, follow=True) != before
    # A name of more than 255 bytes: the system refuses to look.
    (root / "self").symlink_to("x" * 300)
    with pytest.raises(OSError, match="File name too long"):
        trees.state_digest(root, follow=True)
