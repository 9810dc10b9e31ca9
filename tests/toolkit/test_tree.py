"""A toolkit on disk: parts with files of the same name, and changes that every build notices."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file, make_folder
from tests.toolkit.parts import part_of

from tfwright.errors import SupplyError
from tfwright.toolkit import tree
from tfwright.toolkit.tree import InstalledPart
from tfwright.tools import files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "toolkit").mkdir()
    return tmp_path / "toolkit"


def part(made: Path, files: Mapping[str, str]) -> InstalledPart:
    """Write a part's files, and describe it."""
    for name, text in files.items():
        make_file(made / name, text)
    return part_of(made)


def test_a_file_that_two_parts_share_stays_while_one_of_them_has_it(
    root: Path, tmp_path: Path
) -> None:
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    cuda = part(one, {"LICENSE": "text", "bin/nvcc": "nvcc"})
    tree.add_part(root, "cuda", cuda, one)
    tree.add_part(root, "cudnn", part(two, {"LICENSE": "text", "lib/a": "a"}), two)
    tree.add_part(root, "cuda", part(three, {"bin/ptxas": "ptxas"}), three)
    record = tree.read(root)
    left = tree.content(root).keys() - {str(tree.RECORD)}
    assert left == {"LICENSE", "bin/ptxas", "lib/a"}
    assert tree.read(root) == record


def test_parts_with_different_files_of_one_name_are_refused_and_nothing_changes(
    root: Path, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    tree.add_part(root, "cuda", part(one, {"include/a.h": "1"}), one)
    before = tree.content(root)
    with fails(SupplyError, "cudnn", "cuda", "include/a.h"):
        tree.add_part(root, "cudnn", part(two, {"include/a.h": "2"}), two)
    assert tree.content(root) == before


def test_a_record_of_an_older_tfwright_counts_as_none(root: Path) -> None:
    (root / tree.RECORD).write_text('{"parts": 1}', "utf-8")
    assert not tree.read(root).parts


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """Make a toolkit of two files and a link."""
    made = tmp_path / "made"
    make_file(made / "bin/nvcc", b"nvcc")
    (made / "bin/ptxas").write_bytes(b"ptxas")
    (made / "bin/cc").symlink_to("nvcc")
    part = part_of(made)
    root = make_folder(tmp_path / "toolkits/cuda-11.8")
    tree.add_part(root, "cuda", part, made)
    return root


def recorded(unpacked: Path) -> dict[str, str]:
    return tree.read(unpacked).parts["cuda"].files


def test_a_toolkit_as_it_was_unpacked_is_sound_and_not_read_twice(
    unpacked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tree.changed_files(unpacked, recorded(unpacked)) == []
    monkeypatch.setattr(files, "sha256", lambda _: pytest.fail("a file was read"))
    assert tree.changed_files(unpacked, recorded(unpacked)) == []


@pytest.mark.parametrize("looked_before", [True, False])
@pytest.mark.parametrize("way", ["content", "gone", "link", "a file for a link"])
def test_a_change_is_noticed_and_the_remedy_named(
    unpacked: Path, way: str, *, looked_before: bool
) -> None:
    if looked_before:
        tree.check_tree(unpacked, "mine")
    victim = unpacked / ("bin/cc" if "link" in way else "bin/ptxas")
    victim.unlink()
    if way == "content":
        victim.write_bytes(b"PTXAS")
    elif way == "link":
        victim.symlink_to("ptxas")
    elif way == "a file for a link":
        victim.write_bytes(b"nvcc")
    with fails(SupplyError, unpacked, "'invoke toolkit --recipe mine'") as caught:
        tree.check_tree(unpacked, "mine")
    assert caught.value.evidence.lines == [victim.relative_to(unpacked).as_posix()]


def test_what_users_add_is_theirs(unpacked: Path) -> None:
    (unpacked / "bin/mine").write_bytes(b"mine")
    tree.check_tree(unpacked, "mine")


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"bin/nvcc": 1}', b"[" * 9999])
def test_a_damaged_list_of_what_was_seen_only_costs_a_look(unpacked: Path, content: bytes) -> None:
    make_file(unpacked.with_name(f"{unpacked.name}.seen.json"), content)
    tree.check_tree(unpacked, "mine")
    assert tree.changed_files(unpacked, recorded(unpacked)) == []


def test_a_list_of_what_was_seen_cannot_speak_for_another_record(unpacked: Path) -> None:
    tree.check_tree(unpacked, "mine")
    other = recorded(unpacked) | {"bin/nvcc": hashlib.sha256(b"other").hexdigest()}
    assert tree.changed_files(unpacked, other) == ["bin/nvcc"]
