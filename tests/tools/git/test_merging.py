import re
from pathlib import Path

import pytest
from tests import upstream
from tests.failing import fails
from tests.making import make_file, make_folder
from tests.upstream import run_git

from tfwright.errors import RecipeError
from tfwright.tools import files
from tfwright.tools.git import merging
from tfwright.tools.git.merging import Merge
from tfwright.tools.git.work_tree import WorkTree

BEFORE = "".join(f"line {number} of the file\n" for number in range(1, 60))
HEAD = """\
Base: {base}
Why: a
Upstream: none; a
Drop when: release >= 9.0

"""
DIFF = """\
diff --git a/core/op.cc b/core/op.cc
--- a/core/op.cc
+++ b/core/op.cc
@@ -10,2 +10,2 @@
 line 10 of the file
-line 11 of the file
+line 11 is patched
diff --git a/core/new.txt b/core/new.txt
new file mode 100644
--- /dev/null
+++ b/core/new.txt
@@ -0,0 +1 @@
+new
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a repository whose first commit is the one that the patch was made for."""
    place = tmp_path / "source"
    commit(place, BEFORE)
    return place


def commit(source: Path, text: str) -> str:
    return upstream.commit(source, {"core/op.cc": text})


def patch_of(source: Path, base: str, diff: str) -> Path:
    return make_file(source.parent / "0001-x.patch", HEAD.format(base=base) + diff)


def tree_at(source: Path, new: str) -> Path:
    """Check a commit out."""
    tree = WorkTree(source.parent / "tree")
    tree.prepare(source / ".git", new, ())
    tree.check_out(tree.content())
    return tree.place


def merged(source: Path, text: str, diff: str = DIFF) -> tuple[Path, list[str]]:
    """Merge the patch into a tree whose commit has another text."""
    base = run_git("rev-parse", "HEAD", cwd=source)
    patch = patch_of(source, base, diff)
    assert merging.base_of(patch) == base
    tree = tree_at(source, commit(source, text))
    return tree, Merge(tree, source / ".git", base, print).apply_patch(patch)


def test_what_upstream_changed_elsewhere_and_the_patch_come_together(source: Path) -> None:
    text = BEFORE.replace("line 40 of", "line 40 is of")
    tree, conflicts = merged(source, text)
    assert conflicts == []
    assert (tree / "core/op.cc").read_text("utf-8") == text.replace(
        "line 11 of the file", "line 11 is patched"
    )
    assert (tree / "core/new.txt").read_text("utf-8") == "new\n"


@pytest.mark.parametrize("link", ["core", "core/op.cc"])
def test_nothing_is_written_through_a_link_of_the_tree(source: Path, link: str) -> None:
    tree, _ = merged(source, BEFORE)
    outside = make_folder(source.parent / "outside")
    files.remove(tree / link)
    (tree / link).symlink_to(outside / "x" if "/" in link else outside)
    base = merging.base_of(source.parent / "0001-x.patch")
    with fails(RecipeError, "core/op.cc"):
        Merge(tree, source / ".git", base, print).apply_patch(source.parent / "0001-x.patch")
    assert list(outside.iterdir()) == []


def test_a_line_that_both_changed_is_shown_in_three_versions(source: Path) -> None:
    tree, conflicts = merged(source, BEFORE.replace("line 11 of the file", "line 11 by upstream"))
    assert conflicts == ["core/op.cc"]
    text = (tree / "core/op.cc").read_text("utf-8")
    assert [line for line in text.splitlines() if "11" in line] == [
        "line 11 by upstream",
        "line 11 of the file",
        "line 11 is patched",
    ]
    assert merging.has_conflicts(tree / "core/op.cc")


def test_a_file_that_was_indented_again_conflicts_only_where_the_patch_is(source: Path) -> None:
    indented = "".join(f"    {line}\n" for line in BEFORE.splitlines())
    tree, conflicts = merged(source, indented)
    assert conflicts == ["core/op.cc"]
    lines = (tree / "core/op.cc").read_text("utf-8").splitlines()
    assert len(lines) < 59 + 12
    assert lines.index("<<<<<<< the new commit") == 9


SECOND = """\
diff --git a/core/op.cc b/core/op.cc
--- a/core/op.cc
+++ b/core/op.cc
@@ -10,1 +10,1 @@
-auto* const opener = Find<Opener>(name);
+auto* const opener = nullptr;
@@ -30,2 +30,2 @@
 line 30 of the file
-line 31 of the file
+line 31 is patched
@@ -50,2 +50,2 @@
 line 50 of the file
-line 51 of the file
+line 51 is patched
"""


def test_of_a_file_that_was_rewritten_each_part_of_a_patch_is_placed_by_itself(
    source: Path,
) -> None:
    opener = "auto* const opener = Find<Opener>(name);\n"
    commit(source, BEFORE.replace("line 10 of the file\n", opener))
    # Upstream has the change at line 51 itself, and no opener any more.
    lines = [f"    {line}" for line in BEFORE.splitlines()]
    lines[29:31] = ["line 30 of the file", "line 31 of the file"]
    lines[49:51] = ["line 50 of the file", "line 51 is patched"]
    text = "\n".join(lines) + "\n"
    tree, conflicts = merged(source, text, SECOND)
    assert conflicts == ["core/op.cc"]
    merged_text = (tree / "core/op.cc").read_text("utf-8")
    assert "line 30 of the file\nline 31 is patched\n" in merged_text
    assert "line 50 of the file\nline 51 is patched\n" in merged_text
    # What has no place any more is between marks of its own.
    assert merged_text.count("<<<<<<< ") == 1
    (conflict,) = re.findall(r"(?s)<<<<<<< .*>>>>>>> ", merged_text)
    assert conflict == (
        "<<<<<<< the new commit\n"
        f"||||||| the commit of the patch\n{opener}"
        "=======\nauto* const opener = nullptr;\n>>>>>>> "
    )


def test_a_patch_that_follows_another_one_of_its_series_loses_nothing(source: Path) -> None:
    earlier = BEFORE.replace("line 11 of the file", "line 11 by an earlier patch")
    diff = DIFF.replace("-line 11 of the file", "-line 11 by an earlier patch")
    tree, conflicts = merged(source, earlier, diff)
    assert conflicts == []
    assert (tree / "core/op.cc").read_text("utf-8") == earlier.replace(
        "line 11 by an earlier patch", "line 11 is patched"
    )


def test_the_change_to_a_file_that_neither_commit_has_waits_for_a_person(source: Path) -> None:
    tree, conflicts = merged(source, BEFORE, DIFF.replace("core/op.cc", "core/other.cc"))
    assert conflicts == ["core/other.cc"]
    assert "+line 11 is patched" in (tree / "core/other.cc.rej").read_text("utf-8")


DELETED = """\
diff --git a/core/op.cc b/core/op.cc
deleted file mode 100644
--- a/core/op.cc
+++ /dev/null
@@ -1,1 +0,0 @@
-old
"""
PROGRAM = """\
diff --git a/core/op.cc b/core/op.cc
old mode 100644
new mode 100755
"""


@pytest.mark.parametrize("known", [True, False], ids=["of a known commit", "of an unknown one"])
def test_a_deletion_or_a_mode_is_carried_or_waits_for_a_person(tmp_path: Path, known: bool) -> None:  # noqa: FBT001
    source = tmp_path / "source"
    base = commit(source, "old\n")
    original = source / ".git" if known else None
    for text, diff, conflicts in (
        ("old\n", DELETED, []),
        ("new\n", DELETED, ["core/op.cc"]),
        ("new\n", PROGRAM, []),
    ):
        tree = tree_at(source, commit(source, text))
        merge = Merge(tree, original, base if known else "", print)
        assert merge.apply_patch(patch_of(source, base, diff)) == conflicts
        file = tree / "core/op.cc"
        assert file.exists() == bool(conflicts or diff == PROGRAM)
        assert file.with_name("op.cc.rej").exists() == bool(conflicts)
        assert diff != PROGRAM or file.stat().st_mode & 0o100


def test_line_ends_stay_and_each_mark_has_a_line_of_its_own(tmp_path: Path) -> None:
    source = tmp_path / "source"
    text = "1\r\n\x0c2\r\n3\r\n4\r\n5"
    diff = "".join(
        "diff --git a/core/op.cc b/core/op.cc\n--- a/core/op.cc\n+++ b/core/op.cc\n"
        "@@ -1,2 +1,2 @@\n-1\r\n+one\r\n \x0c2\r\n@@ -4,2 +4,2 @@\n 4\r\n-5\n"
        "\\ No newline at end of file\n+five\n\\ No newline at end of file\n"
    )
    for now, wanted in (("5", "4\r\nfive"), ("6", ">>>>>>> the patch\n")):
        base = commit(source, text)
        tree = tree_at(source, commit(source, f"{text[:-1]}{now}"))
        Merge(tree, None, "", print).apply_patch(patch_of(source, base, diff))
        found = (tree / "core/op.cc").read_bytes().decode()
        assert found.startswith("one\r\n\x0c2\r\n3\r\n")
        assert found.endswith(wanted)


def test_a_program_stays_one(source: Path) -> None:
    (source / "core/op.cc").chmod(0o755)
    commit(source, BEFORE)
    tree, _ = merged(source, BEFORE)
    assert (tree / "core/op.cc").stat().st_mode & 0o100


def merged_after_a_move(source: Path, place: str) -> tuple[Path, list[str]]:
    """Merge the patch into a tree whose commit has the file elsewhere, or not at all."""
    base = run_git("rev-parse", "HEAD", cwd=source)
    (source / "core/op.cc").unlink()
    files_now = {
        "core/other.cc": "nothing like it\n" * 59,
        # It holds all of the text, and much else.
        "core/amalgamation.cc": BEFORE * 20,
    }
    if place:
        files_now[place] = BEFORE.replace("line 40 of", "line 40 is of")
    tree = tree_at(source, upstream.commit(source, files_now))
    said: list[str] = []
    Merge(tree, source / ".git", base, said.append).apply_patch(patch_of(source, base, DIFF))
    return tree, said


def test_a_file_that_was_moved_is_merged_where_it_is_now(source: Path) -> None:
    tree, said = merged_after_a_move(source, "core/ops/op.cc")
    assert said == ["core/op.cc is core/ops/op.cc in the new commit"]
    text = (tree / "core/ops/op.cc").read_text("utf-8")
    assert "line 11 is patched\n" in text
    assert "line 40 is of" in text
    assert not (tree / "core/op.cc").exists()


def test_the_change_to_a_file_that_is_gone_waits_for_a_person(source: Path) -> None:
    tree, said = merged_after_a_move(source, "")
    assert said == ["core/op.cc is gone"]
    assert not (tree / "core/op.cc").exists()
    rejected = (tree / "core/op.cc.rej").read_text("utf-8")
    assert "+line 11 is patched\n" in rejected
