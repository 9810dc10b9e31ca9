"""A toolkit whose files were changed after they were unpacked is noticed by every build."""

import hashlib
from pathlib import Path

import pytest
from tests.vault.parts import part_of

from tfwright.errors import SupplyError
from tfwright.toolkit import soundness, tree
from tfwright.tools import files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a toolkit of two files and a link."""
    made = tmp_path / "made"
    (made / "bin").mkdir(parents=True)
    (made / "bin/nvcc").write_bytes(b"nvcc")
    (made / "bin/ptxas").write_bytes(b"ptxas")
    (made / "bin/cc").symlink_to("nvcc")
    part = part_of(made)
    root = tmp_path / "toolkits/cuda-11.8"
    root.mkdir(parents=True)
    tree.add(root, "cuda", part, made)
    return root


def recorded(root: Path) -> dict[str, str]:
    return tree.read(root).parts["cuda"].files


def test_a_toolkit_as_it_was_unpacked_is_sound_and_not_read_twice(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert soundness.changed(root, recorded(root)) == []
    monkeypatch.setattr(files, "sha256", lambda _: pytest.fail("a file was read"))
    assert soundness.changed(root, recorded(root)) == []


@pytest.mark.parametrize("looked_before", [True, False])
@pytest.mark.parametrize("way", ["content", "gone", "link", "a file for a link"])
def test_a_change_is_noticed_and_the_remedy_named(
    root: Path, way: str, *, looked_before: bool
) -> None:
    if looked_before:
        soundness.insist(root, "mine")
    victim = root / ("bin/cc" if "link" in way else "bin/ptxas")
    victim.unlink()
    if way == "content":
        victim.write_bytes(b"PTXAS")
    elif way == "link":
        victim.symlink_to("ptxas")
    elif way == "a file for a link":
        victim.write_bytes(b"nvcc")
    with pytest.raises(SupplyError, match="changed since it was unpacked") as caught:
        soundness.insist(root, "mine")
    assert caught.value.evidence.lines == [victim.relative_to(root).as_posix()]
    assert "'invoke toolkit --recipe mine'" in caught.value.remedy


def test_what_users_add_is_theirs(root: Path) -> None:
    (root / "bin/mine").write_bytes(b"mine")
    soundness.insist(root, "mine")


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"bin/nvcc": 1}', b"[" * 9999])
def test_a_damaged_list_of_what_was_seen_only_costs_a_look(root: Path, content: bytes) -> None:
    seen = root.with_name(f"{root.name}.seen.json")
    seen.write_bytes(content)
    soundness.insist(root, "mine")
    assert soundness.changed(root, recorded(root)) == []


def test_a_list_of_what_was_seen_cannot_speak_for_another_record(root: Path) -> None:
    soundness.insist(root, "mine")
    other = recorded(root) | {"bin/nvcc": hashlib.sha256(b"other").hexdigest()}
    assert soundness.changed(root, other) == ["bin/nvcc"]
