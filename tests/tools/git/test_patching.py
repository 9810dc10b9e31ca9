"""Patches: what their headers say, what is refused, and that they are believed by content only."""

import time
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file
from tests.upstream import commit

from tfwright.errors import RecipeError
from tfwright.tools.git import patching
from tfwright.tools.git.patching import PatchHeader
from tfwright.tools.git.work_tree import WorkTree

OP = "".join(f"line {number}\n" for number in range(1, 21))
FITS = """\
diff --git a/core/op.cc b/core/op.cc
--- a/core/op.cc
+++ b/core/op.cc
@@ -2,3 +2,4 @@ namespace tensorflow {
 line 2
-line 3
+line three
+line three and a half
 line 4
@@ -18,3 +19,2 @@
 line 18
-line 19
 line 20
"""
CREATES = """\
diff --git a/core/new.sh b/core/new.sh
new file mode 100755
--- /dev/null
+++ b/core/new.sh
@@ -0,0 +1 @@
+#!/bin/sh
\\ No newline at end of file
"""
LINKS = """\
diff --git a/core/passwd b/core/passwd
new file mode 120000
--- /dev/null
+++ b/core/passwd
@@ -0,0 +1 @@
+/etc/passwd
\\ No newline at end of file
"""
HEADER = """\
Why: gcc 7 refuses
 the old form.
Upstream: https://github.com/tensorflow/tensorflow/issues/1
Drop when: the release is 1.9 or later.

"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Prepare a tree with a few files in its index."""
    upstream = tmp_path / "upstream"
    commit(upstream, {"core/op.cc": OP, "core/end.txt": "no end"})
    (upstream / "core/out").symlink_to(tmp_path)
    pinned = commit(upstream)
    WorkTree(tmp_path / "tree").prepare(upstream / ".git", pinned, ())
    return tmp_path / "tree"


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    return tmp_path / "0001-why.patch"


def put_in(tree: Path, patch: Path, text: str) -> None:
    patch.write_text(text, "utf-8")
    patching.apply(WorkTree(tree), patch)


def test_a_patch_changes_the_files_as_its_hunks_say(tree: Path, patch: Path) -> None:
    put_in(tree, patch, HEADER + FITS + CREATES)
    WorkTree(tree).check_out(WorkTree(tree).content())
    lines = (tree / "core/op.cc").read_text("utf-8").splitlines()
    assert (lines[1:5], lines[-2:]) == (
        ["line 2", "line three", "line three and a half", "line 4"],
        ["line 18", "line 20"],
    )
    assert (tree / "core/new.sh").read_bytes() == b"#!/bin/sh"
    assert (tree / "core/new.sh").stat().st_mode & 0o777 == 0o755


def test_the_last_line_may_gain_and_lose_its_end(tree: Path, patch: Path) -> None:
    head = (
        "diff --git a/core/end.txt b/core/end.txt\n--- a/core/end.txt\n+++ b/core/end.txt\n@@ -1 "
        "+1 @@\n"
    )
    put_in(tree, patch, f"{head}-no end\n\\ No newline at end of file\n+no end\n")
    put_in(tree, patch, f"{head}-no end\n+an end\n\\ No newline at end of file\n")
    assert WorkTree(tree).text(f"{WorkTree(tree).content()}:core/end.txt") == "an end"


def test_a_file_may_be_removed(tree: Path, patch: Path) -> None:
    put_in(
        tree,
        patch,
        "diff --git a/core/end.txt b/core/end.txt\ndeleted file mode 100644\n--- "
        "a/core/end.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-no end\n\\ No newline at end of file\n",
    )
    WorkTree(tree).check_out(WorkTree(tree).content())
    assert not (tree / "core/end.txt").exists()


def test_patches_of_one_file_build_on_each_other(tree: Path, patch: Path) -> None:
    put_in(tree, patch, FITS)
    put_in(
        tree,
        patch,
        "diff --git a/core/op.cc b/core/op.cc\n--- a/core/op.cc\n+++ b/core/op.cc\n@@ -2,3 +2,2 "
        "@@\n line 2\n-line three\n line three and a half\n",
    )


def test_a_hunk_that_does_not_fit_is_shown_with_what_the_tree_has_there(
    tree: Path, patch: Path
) -> None:
    with fails(RecipeError, "18") as caught:
        put_in(tree, patch, FITS.replace("-line 19", "-line nineteen"))
    assert caught.value.evidence.where == "core/op.cc:18"
    assert list(caught.value.evidence.lines) == [
        "core/op.cc, hunk 2:",
        "  patch: line nineteen",
        "  tree:  line 19",
        "   16 line 16",
        "   17 line 17",
        "   18 line 18",
        "   19 line 19",
        "   20 line 20",
    ]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            FITS.replace("\n line 20", "\n line twenty"),
            ("hunk 2", "core/op.cc", "line 18", "line twenty", "line 20"),
        ),
        (FITS.partition("@@")[0] + "@@ -3 +3 @@\n-line 3\n+three\n", ("no line of context",)),
        (FITS.replace("core/op.cc", "core/gone.cc"), ("core/gone.cc",)),
        (CREATES.replace("core/new.sh", "core/op.cc"), ("exists already",)),
        (FITS.replace("+++ b/core/op.cc", "+++ b/core/end.txt"), ()),
    ],
    ids=["context that differs", "no context", "no file", "a file in its place", "two names"],
)
def test_what_does_not_fit_is_refused_with_what_is_wrong(
    tree: Path, patch: Path, text: str, named: tuple[str, ...]
) -> None:
    with fails(RecipeError, *named):
        put_in(tree, patch, text)


def test_a_misfit_whose_header_says_that_it_is_due_is_to_be_removed(
    tree: Path, patch: Path
) -> None:
    patch.write_text(HEADER + FITS.replace("-line 19", "-line nineteen"), "utf-8")
    with fails(RecipeError) as caught:
        patching.apply(WorkTree(tree), patch, lambda _: "release >= 1.9")
    assert caught.value.remedy == (
        "Remove the patch from the recipe; its header says: drop when release >= 1.9."
    )


def test_a_misfit_is_shown_where_the_code_is_now(tree: Path, patch: Path) -> None:
    text = FITS.replace("@@ -18,3 +19,2 @@", "@@ -5,3 +6,2 @@").replace("line 19", "line xx")
    with fails(RecipeError, "18") as caught:
        put_in(tree, patch, text)
    assert "   19 line 19" in caught.value.evidence.lines


def test_a_hunk_that_moved_is_applied_with_a_note(tree: Path, patch: Path) -> None:
    patch.write_text(HEADER + FITS.replace("@@ -18,3 +19,2 @@", "@@ -11,3 +12,2 @@"), "utf-8")
    (note,) = patching.apply(WorkTree(tree), patch)
    assert "hunk 2 of core/op.cc applies at line 18, 7 lines below" in note


def test_a_patch_that_is_in_the_tree_already_can_go(tree: Path, patch: Path) -> None:
    put_in(tree, patch, FITS)
    with fails(RecipeError, "core/op.cc", "Remove", "1.9"):
        put_in(tree, patch, HEADER + FITS)


def test_a_deletion_is_not_taken_for_done_while_its_line_is_elsewhere(
    tree: Path, patch: Path
) -> None:
    deletes = (
        "diff --git a/core/op.cc b/core/op.cc\n--- a/core/op.cc\n+++ b/core/op.cc\n"
        "@@ -2,3 +2,2 @@\n line 2\n-line 12\n line 3\n"
    )
    with fails(RecipeError, "invoke patch --refresh ") as caught:
        put_in(tree, patch, deletes)
    assert "already" not in caught.value.what


def test_a_file_that_is_made_or_removed_by_now_needs_no_patch(tree: Path, patch: Path) -> None:
    put_in(tree, patch, CREATES)
    with fails(RecipeError, "hunk 1", "Remove"):
        put_in(tree, patch, CREATES)
    removes = (
        "diff --git a/core/none.cc b/core/none.cc\ndeleted file mode 100644\n"
        "--- a/core/none.cc\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    )
    with fails(RecipeError, "core/none.cc", "Remove"):
        put_in(tree, patch, removes)


def test_ends_of_lines_that_differ_are_shown_as_what_differs(tmp_path: Path, patch: Path) -> None:
    upstream = tmp_path / "windows"
    commit(upstream, {"core/op.cc": OP.replace("\n", "\r\n")})
    WorkTree(tmp_path / "tree").prepare(upstream / ".git", commit(upstream), ())
    with fails(RecipeError, "2") as caught:
        put_in(tmp_path / "tree", patch, FITS)
    assert r"  tree:  'line 2\r\n'" in caught.value.evidence.lines


def test_a_change_that_upstream_made_in_other_words_is_recognised(tree: Path, patch: Path) -> None:
    put_in(tree, patch, FITS.replace("+line three\n", "+line  three\n"))
    with fails(RecipeError, "core/op.cc", "Compare"):
        put_in(tree, patch, HEADER + FITS)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (FITS.replace("core/op.cc", "/etc/passwd"), "/etc/passwd"),
        (FITS.replace("core/op.cc", "../outside"), "../outside"),
        (CREATES.replace("core/new.sh", ".git/hooks/x"), ".git/hooks/x"),
        (CREATES.replace("core/new.sh", "core/.GIT/config"), "core/.GIT/config"),
        *(
            (CREATES.replace("core/new.sh", name), "0001-why.patch:6")
            for name in (
                "git~1/config",
                ".git./config",
                ".git::$INDEX_ALLOCATION/config",
                ".g\u200cit/config",
                "core\\.git\\config",
                "-rf",
                "~/.bashrc",
                "core/\x1b[2J",
                "core/a\0b",
            )
        ),
        (CREATES.replace("core/new.sh", "core/out/made"), "core/out"),
        (LINKS, "120000"),
        *(
            (LINKS.replace("120000", mode), "0001-why.patch:7")
            for mode in ("999999", "-1", "\u0661\u0660\u0660\u0666\u0664\u0664", "160000")
        ),
        (CREATES.replace("100755", "104755"), "104755"),
        (
            "diff --git a/core/op.cc b/core/oq.cc\nrename from core/op.cc\nrename to core/oq.cc\n",
            "--no-renames",
        ),
        ("diff --git a/core/op.cc b/core/op.cc\nGIT binary patch\nliteral 1\n", "GIT binary patch"),
        (FITS.replace("\n", "\r\n"), "CRLF"),
        (FITS.replace("-2,3 +2,4", "-2,5 +2,6"), "@@ -2,5 +2,6 @@"),
        (FITS.partition("\n")[2], "diff --git"),
        ("", "diff --git"),
    ],
)
def test_what_reaches_outside_or_cannot_be_verified_is_refused(
    tree: Path, patch: Path, text: str, named: str
) -> None:
    with fails(RecipeError, named):
        put_in(tree, patch, HEADER + text)


def test_a_link_of_the_tree_cannot_be_turned_elsewhere(tree: Path, patch: Path) -> None:
    target = (tree.parent / "upstream/core/out").readlink()
    text = (
        "diff --git a/core/out b/core/out\n--- a/core/out\n+++ b/core/out\n@@ -1 +1 "
        f"@@\n-{target}\n\\ No newline at end of file\n+/etc\n\\ No newline at end of file\n"
    )
    with fails(RecipeError, "core/out"):
        put_in(tree, patch, text)


def test_a_part_that_git_skipped_without_a_word_is_noticed(
    tree: Path, patch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_one = WorkTree(tree).command("apply", "--cached", "--exclude=core/new.sh", str(patch))
    monkeypatch.setattr(patching, "apply_command", lambda _tree, _patch: only_one)
    with fails(RecipeError, "core/new.sh"):
        put_in(tree, patch, FITS + CREATES)


def test_a_file_that_git_changed_in_another_way_is_noticed(
    tree: Path, patch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_file(patch.with_name("other.patch"), FITS.replace("+line three\n", "+line 3.0\n"))
    replacing = WorkTree(tree).command("apply", "--cached", str(other))
    monkeypatch.setattr(patching, "apply_command", lambda _tree, _patch: replacing)
    with fails(RecipeError, "core/op.cc"):
        put_in(tree, patch, FITS)


@pytest.mark.medium
def test_a_form_feed_ends_no_line(tree: Path, patch: Path) -> None:
    put_in(tree, patch, FITS.replace("+line three\n", "+line\fthree\u2028\r\n"))
    assert "line\fthree\u2028\r\n" in WorkTree(tree).text(f"{WorkTree(tree).content()}:core/op.cc")


def test_a_header_says_why_whence_and_until_when(patch: Path) -> None:
    patch.write_text(HEADER + FITS, "utf-8")
    assert patching.read_header(patch) == PatchHeader(
        why="gcc 7 refuses the old form.",
        upstream="https://github.com/tensorflow/tensorflow/issues/1",
        drop_when="the release is 1.9 or later.",
    )


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (FITS, "Why:, Upstream:, Drop when:"),
        (HEADER.replace("Upstream:", "See:") + FITS, "Upstream:"),
        (HEADER.replace("the release is 1.9 or later.", "") + FITS, "Drop when:"),
        (HEADER + HEADER + FITS, "Why:, Upstream:, Drop when:"),
        (FITS + HEADER, "Why:"),
    ],
)
def test_a_header_that_lacks_a_field_is_refused(patch: Path, text: str, wrong: str) -> None:
    patch.write_text(text, "utf-8")
    with fails(RecipeError, wrong):
        patching.read_header(patch)


def test_a_patch_of_hundreds_of_megabytes_is_not_even_read(tmp_path: Path) -> None:
    patch = tmp_path / "0001-large.patch"
    with patch.open("wb") as stream:
        stream.truncate(300 * 2**20)
    with fails(RecipeError, f"{patching.LARGEST:,}"):
        patching.read(patch)


def test_a_hunk_at_a_line_of_5000_digits_is_refused(tmp_path: Path) -> None:
    path = make_file(tmp_path / "a.patch", FITS.replace("@@ -2,3", f"@@ -{'9' * 5000},3"))
    with fails(RecipeError, "@@ -2,3 +2,4 @@"):
        patching.read(path)


@pytest.mark.medium
def test_a_patch_of_very_many_hunks_is_refused_in_a_moment(tmp_path: Path) -> None:
    path = tmp_path / "a.patch"
    begin = "diff --git a/x b/x\n--- a/x\n+++ b/x\n"
    path.write_text(begin + "@@ -1 +1 @@\n-a\n+b\n" * 200_000)
    begun = time.process_time()
    with fails(RecipeError, "5,000"):
        patching.read(path)
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["a" * 500_000], ["ab" * 250_000]),
        ([f"line {number}" for number in range(20_000)], ["x"]),
        (["same"] * 20_000, ["same"] * 20_000),
    ],
    ids=["long lines", "many lines", "equal lines"],
)
def test_a_long_hunk_that_does_not_fit_is_refused_in_a_moment(
    before: list[str], after: list[str], tree: Path, patch: Path
) -> None:
    body = "".join(f"-{line}\n" for line in before)
    body += "".join(f"+{line}\n" for line in after)
    head = "diff --git a/core/op.cc b/core/op.cc\n--- a/core/op.cc\n+++ b/core/op.cc\n"
    hunk = f"@@ -1,{len(before)} +1,{len(after)} @@\n"
    begun = time.process_time()
    with fails(RecipeError, "too long"):
        put_in(tree, patch, head + hunk + body)
    assert time.process_time() - begun < 5
