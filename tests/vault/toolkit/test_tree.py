"""Parts of a toolkit that have files of the same name."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.vault.parts import part_of

from tfwright.errors import SupplyError
from tfwright.toolkit import tree
from tfwright.toolkit.tree import InstalledPart


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "toolkit").mkdir()
    return tmp_path / "toolkit"


def part(made: Path, files: Mapping[str, str]) -> InstalledPart:
    """Write a part's files, and describe it."""
    for name, text in files.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text, "utf-8")
    return part_of(made)


def test_a_file_that_two_parts_share_stays_while_one_of_them_has_it(
    root: Path, tmp_path: Path
) -> None:
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    cuda = part(one, {"LICENSE": "text", "bin/nvcc": "nvcc"})
    tree.add(root, "cuda", cuda, one)
    tree.add(root, "cudnn", part(two, {"LICENSE": "text", "lib/a": "a"}), two)
    record = tree.add(root, "cuda", part(three, {"bin/ptxas": "ptxas"}), three)
    left = tree.content(root).keys() - {str(tree.RECORD)}
    assert left == {"LICENSE", "bin/ptxas", "lib/a"}
    assert tree.read(root) == record


def test_parts_with_different_files_of_one_name_are_refused_and_nothing_changes(
    root: Path, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    tree.add(root, "cuda", part(one, {"include/a.h": "1"}), one)
    before = tree.content(root)
    with pytest.raises(SupplyError, match=r"cudnn and cuda both have include/a\.h"):
        tree.add(root, "cudnn", part(two, {"include/a.h": "2"}), two)
    assert tree.content(root) == before


def test_a_record_of_an_older_tfwright_counts_as_none(root: Path) -> None:
    (root / tree.RECORD).write_text('{"parts": 1}', "utf-8")
    assert not tree.read(root).parts
