"""The patched tree: every patch is applied once, until it or an earlier one changes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.failing import fails
from tests.making import make_folder
from tests.upstream import commit

from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import SourceTable
from tfwright.errors import RecipeError
from tfwright.rules.patched_tree import STEPS, PatchedTree, rule_digests
from tfwright.tools.git import patching
from tfwright.tools.git.work_tree import WorkTree, repository_of

LINES = "".join(f"line {number}\n" for number in range(1, 30))


def changing(line: int, to: str) -> str:
    """Return a patch of one line of op.cc."""
    return (
        "diff --git a/op.cc b/op.cc\n--- a/op.cc\n+++ b/op.cc\n"
        f"@@ -{line - 1},3 +{line - 1},3 @@\n"
        f" line {line - 1}\n-line {line}\n+{to}\n line {line + 1}\n"
    )


@pytest.fixture
def patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder of three patches."""
    folder = make_folder(tmp_path / "patches")
    for number in (1, 2, 3):
        (folder / f"000{number}.patch").write_text(changing(number * 5, f"new {number}"), "utf-8")
    monkeypatch.setattr(recipes, "PATCHES", folder)
    return folder


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the patches that git was asked to apply."""
    names: list[str] = []
    plain = patching.apply

    def apply(
        tree: WorkTree,
        patch: Path,
        *more: Any,  # noqa: ANN401 as it takes them
    ) -> list[str]:
        names.append(patch.name)
        return plain(tree, patch, *more)

    monkeypatch.setattr(patching, "apply", apply)
    return names


Make = Callable[..., PatchedTree]


@pytest.fixture
def make(tmp_path: Path, patches: Path) -> Make:
    """Return what opens the patched tree of a recipe with the given patches."""
    pinned = commit(tmp_path / "upstream", {"op.cc": LINES, "WORKSPACE": "\n"})

    def opened(*names: str) -> PatchedTree:
        named = names or tuple(path.name for path in sorted(patches.iterdir()))
        table = SourceTable(
            url="https://example.org/t.git",
            branch="main",
            commit=pinned,
            release="1.8",
            patches=named,
        )
        return PatchedTree(tmp_path / "scratch", table, tmp_path / "upstream/.git", pinned)

    return opened


def op_of(content: str, tmp_path: Path) -> str:
    return WorkTree(tmp_path / "scratch").text(f"{content}:op.cc")


def test_a_second_run_applies_nothing_and_gives_the_same(make: Make, applied: list[str]) -> None:
    first = make().apply_all()
    assert applied == ["0001.patch", "0002.patch", "0003.patch"]
    assert make().apply_all() == first
    assert len(applied) == 3


@pytest.mark.medium
def test_after_a_changed_patch_it_and_the_later_ones_are_applied(
    make: Make, applied: list[str], patches: Path, tmp_path: Path
) -> None:
    make().apply_all()
    applied.clear()
    (patches / "0002.patch").write_text(changing(10, "other"), "utf-8")
    content = make().apply_all()
    assert applied == ["0002.patch", "0003.patch"]
    text = op_of(content, tmp_path)
    assert [text.splitlines()[line - 1] for line in (5, 10, 15)] == ["new 1", "other", "new 3"]


@pytest.mark.medium
def test_a_patch_that_was_dropped_leaves_nothing_behind(
    make: Make, applied: list[str], tmp_path: Path
) -> None:
    make().apply_all()
    applied.clear()
    content = make("0001.patch", "0003.patch").apply_all()
    assert applied == ["0003.patch"]
    assert "line 10\n" in op_of(content, tmp_path)


def test_all_patches_are_tried_before_any_misfit_is_reported(
    make: Make, patches: Path, applied: list[str]
) -> None:
    (patches / "0001.patch").write_text(changing(5, "x").replace("-line 5", "-line y"), "utf-8")
    (patches / "0003.patch").write_text(changing(15, "x").replace("op.cc", "gone.cc"), "utf-8")
    with fails(RecipeError, "2", "0001.patch", "0003.patch"):
        make().apply_all()
    assert len(applied) == 3


@pytest.mark.medium
def test_patches_that_fit_after_a_misfit_was_mended_give_the_same_as_from_nothing(
    make: Make, patches: Path
) -> None:
    good = (patches / "0002.patch").read_text("utf-8")
    expected = make().apply_all()
    (patches / "0002.patch").write_text(good.replace("-line 10", "-line z"), "utf-8")
    with fails(RecipeError):
        make().apply_all()
    (patches / "0002.patch").write_text(good, "utf-8")
    assert make().apply_all() == expected


@pytest.mark.medium
@pytest.mark.parametrize(
    "damage",
    [
        "object",
        "missing object",
        "steps",
        "index",
        "index.lock",
        "HEAD",
        "config",
        "objects/info/alternates",
    ],
)
def test_what_was_damaged_meanwhile_is_made_again(
    make: Make, damage: str, patches: Path, tmp_path: Path
) -> None:
    expected = make().apply_all()
    repository = repository_of(tmp_path / "scratch")
    found = sorted((repository / "objects").glob("??/*"))
    if damage == "object":
        for path in found:
            path.chmod(0o644)
            path.write_bytes(b"garbage")
    elif damage == "missing object":
        found[0].unlink()
    elif damage == "steps":
        (repository / STEPS).write_text('[{"key": 1}]', "utf-8")
    else:
        (repository / damage).write_bytes(b"garbage")
    assert make().apply_all() == expected
    # The last patch changes, so that the index itself is needed as well.
    (patches / "0003.patch").write_text(changing(15, "other"), "utf-8")
    text = op_of(make().apply_all(), tmp_path)
    assert [text.splitlines()[line - 1] for line in (5, 10, 15)] == ["new 1", "new 2", "other"]


@pytest.mark.medium
def test_files_that_are_replaced_are_another_step(make: Make) -> None:
    asked: list[str] = []

    def texts(before: str) -> dict[str, str]:
        asked.append(before)
        return {"WORKSPACE": "other\n"}

    contents = []
    for key in ("a", "a", "b"):
        tree = make()
        tree.apply_all()
        contents.append(tree.replace_files(key, texts))
    assert len(set(contents)) == 1
    assert len(asked) == 2


def test_only_patches_that_can_change_rules_decide_what_is_downloaded(patches: Path) -> None:
    workspace = changing(5, "x").replace("op.cc", "WORKSPACE")
    (patches / "0004.patch").write_text(changing(20, "new") + workspace, "utf-8")
    (patches / "0005.patch").write_text(changing(5, "x").replace("op.cc", "a/rules.bzl"), "utf-8")
    # What cannot be read may change anything.
    (patches / "0006.patch").write_text("no patch", "utf-8")
    table = SourceTable(
        url="https://example.org/t.git",
        branch="main",
        commit="a" * 40,
        release="1.8",
        patches=tuple(path.name for path in sorted(patches.iterdir())),
    )
    assert [*rule_digests(table)] == ["0004.patch", "0005.patch", "0006.patch"]
