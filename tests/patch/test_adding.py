"""Patches as people have them, brought into the form of a recipe's patches."""

import base64
import difflib
import gzip
import quopri
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file, make_folder
from tests.patch.conftest import EDITED, applied
from tests.results import configured_of

from tfwright.documents import recipe as recipes
from tfwright.errors import RecipeError
from tfwright.patch import adding, reading
from tfwright.patch.writing import WrittenPatch
from tfwright.pipeline import stamps
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.stage import Artefact
from tfwright.tools.git import patching
from tfwright.tools.git.patching import PatchHeader

MAIL = """\
From 8f3c0d1e8f3c0d1e8f3c0d1e8f3c0d1e8f3c0d1e Mon Sep 17 00:00:00 2001
From: Ada <ada@example.org>
Date: Mon, 1 Jan 2024 00:00:00 +0000
Subject: [PATCH 1/2] Say that it is
 edited

It does not say so.

---
 matrix.cc | 1 +
 1 file changed, 1 insertion(+)

"""


def asked(said: PatchHeader) -> PatchHeader:
    return PatchHeader(said.why or "Because.", "none; a test", "the release is 2.0 or later.")


def sent(subject: str, body: str, fields: str = "") -> str:
    """Return a mail whose body, and all behind it, may be encoded."""
    return MAIL.partition("Subject:")[0] + f"Subject: {subject}\n{fields}\n{body}"


def diff(text: str, line: str, before: str = "a/", after: str = "b/") -> str:
    old = text.splitlines(keepends=True)
    new = [f"// {line}\n", *old]
    return "".join(difflib.unified_diff(old, new, before + EDITED, after + EDITED))


@pytest.fixture
def text(tree: Path) -> str:
    return (tree / EDITED).read_text("utf-8")


Add = Callable[..., list[WrittenPatch]]
"""What the fixture `add` is: adds what a file, ``given.patch``, holds to the recipe."""


@pytest.fixture
def add(job: RecipeJob, path: Path) -> Add:
    def added(content: str | bytes, name: str = "") -> list[WrittenPatch]:
        file = make_file(path.with_name("given.patch"), content)
        return adding.add(job, path, file, name, asked)

    return added


FORMS: dict[str, Callable[[str], str]] = {
    "diff -u without folders": lambda text: diff(text, "Edited.", "", ""),
    "CRLF": lambda text: diff(text, "Edited.").replace("\n", "\r\n"),
    "no last line end": lambda text: diff(text, "Edited.").rstrip("\n"),
    "mail": lambda text: MAIL + diff(text, "Edited.") + "-- \n2.39.5\n\n",
    "quoted-printable": lambda text: sent(
        "x",
        quopri.encodestring(("y\n---\n" + diff(text, "Edited.")).encode()).decode(),
        "Content-Transfer-Encoding: quoted-printable\n",
    ),
    "base64": lambda text: sent(
        "x",
        base64.encodebytes(("y\n---\n" + diff(text, "Edited.")).encode()).decode(),
        "Content-Transfer-Encoding: base64\n",
    ),
    "whole paths": lambda text: diff(text, "Edited.", "/home/ada/tf/", "/home/ada/tf/"),
    "below a directory": lambda text: diff(text, "Edited.").replace(EDITED, Path(EDITED).name),
    "byte order mark": lambda text: "\ufeff" + diff(text, "Edited."),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_patch_in_any_form_becomes_one_that_the_recipe_applies(
    path: Path, text: str, form: str, add: Add
) -> None:
    (made,) = add(FORMS[form](text))
    assert made.files == (EDITED,)
    if form == "mail":
        assert made.path.name == "0002-say-that-it-is-edited.patch"
        assert patching.read_header(made.path).why == "Say that it is edited. It does not say so."
    assert applied(path).startswith("// Edited.\n")


@pytest.mark.slow
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_each_mail_of_a_series_becomes_a_patch(
    path: Path, text: str, line_end: str, add: Add
) -> None:
    first = MAIL + diff(text, "Edited.")
    second = MAIL.replace("Say", "Repeat") + diff(f"// Edited.\n{text}", "Again.")
    made = add((first + second).replace("\n", line_end))
    names = [each.path.name for each in made]
    assert names == ["0002-say-that-it-is-edited.patch", "0003-repeat-that-it-is-edited.patch"]
    assert "Edited" not in made[1].path.read_text("utf-8").partition("+// Again.")[0][-200:]
    assert applied(path).startswith("// Again.\n// Edited.\n")


@pytest.mark.slow
def test_what_configure_wrote_is_no_edit_until_it_is_edited(
    job: RecipeJob, text: str, monkeypatch: pytest.MonkeyPatch, add: Add
) -> None:
    written = make_file(job.places.tree / ".bazelrc", "build -c opt\n")
    bazelrc = Artefact.of(written)
    made = configured_of(bazelrc, written=(bazelrc,))
    monkeypatch.setattr(stamps, "last_result", lambda *_: made)
    (added,) = add(diff(text, "Edited."))
    assert added.files == (EDITED,)
    written.write_text("build\n", "utf-8")
    with fails(RecipeError, ".bazelrc"):
        add(diff(text, "Edited."))


@pytest.mark.slow
def test_a_rename_becomes_a_removed_and_a_new_file(add: Add) -> None:
    moved = EDITED.replace("matrix", "other")
    names = f"rename from {EDITED}\nrename to {moved}\n"
    rename = f"diff --git a/{EDITED} b/{moved}\nsimilarity index 100%\n{names}"
    (made,) = add(rename, "moved")
    assert set(made.files) == {EDITED, moved}


@pytest.mark.slow
def test_a_patch_that_does_not_fit_leaves_tree_and_recipe_as_they_were(
    job: RecipeJob, path: Path, tmp_path: Path, text: str, add: Add
) -> None:
    before = path.read_text("utf-8")
    other = diff("nothing\nof\nthis\n", "Edited.")
    for content, says in (
        (other, str(job.places.tree)),
        # A name that no recipe can have is refused after git has applied it.
        ("--- /dev/null\n+++ b/n\u00e4me\u00df x.txt\n@@ -0,0 +1 @@\n+x\n", ""),
        # Of a series whose second patch does not fit, the first is taken back.
        (MAIL + diff(text, "Edited.") + MAIL + other, "Patch 2"),
    ):
        with fails(RecipeError, "given.patch", says):
            add(content)
    assert not list(tmp_path.glob("patches/demo/*.patch"))
    assert path.read_text("utf-8") == before
    assert (job.places.tree / EDITED).read_text("utf-8") == text
    assert not list(job.places.tree.glob("n*x.txt"))
    assert recipes.read(str(path)).source.patches == job.recipe.source.patches


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"<!-- saved from url=(0014)about:internet -->\n<html>--- a/x\n+++ b/x\n", "web page"),
        (sent("x", "--- a/x\n+++ b/x\n", "Content-Type: text/html\n").encode(), "web page"),
        (gzip.compress(b"--- a/x\n+++ b/x\n", mtime=0), "gzip"),
        (b"*** a/x\n--- b/x\n***************\n*** 1 ****\n", "context diff"),
        (b"Only in new: y.txt\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n", "diff -ruN"),
        (b"\x1b[1mdiff --git a/x b/x\x1b[m\n", "--no-color"),
        (b"> --- a/x\n> +++ b/x\n", "marks"),
        (b"diff --cc x\n--- a/x\n+++ b/x\n@@@ -1 -1 +1 @@@\n", "merge"),
        (b"1c1\n< x\n---\n> y\n", "no file"),
        (b"diff --git a/l b/l\nnew file mode 120000\n", "b/l"),
        (b"diff --git a/s b/s\nnew file mode 160000\n", "b/s"),
        (b"diff --git a/x b/x\nBinary files a/x and b/x differ\n", "b/x"),
        (b"<!DOCTYPE html>\n<title>Fix by ada</title>\n--- a/x\n", "web page"),
        (b"\n<html><body>diff --git a/x b/x", "web page"),
        ("diff --git a/x b/x\n".encode("utf-16"), "UTF-8"),
        (b"Dear maintainer,\n", "no file"),
        (b"", "no file"),
    ],
)
def test_what_is_no_patch_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    file = make_file(tmp_path / "given.patch", content)
    with fails(RecipeError, str(file), says):
        reading.read(file)


SAID: dict[str, tuple[str, tuple[str, str, str]]] = {
    "encoded words": (sent("[list] [PATCH] =?UTF-8?q?Fix_=C3=A4?=", ""), ("Fix \u00e4", "", "")),
    "control characters": (sent("a\x1b[31mb", "\x07\n"), ("a\\x1b[31mb. \\x07", "", "")),
    "trailers": (sent("a", "b\n\nSigned-off-by: Ada <a@b>\n---\n x | 1 +\n"), ("a. b", "", "")),
    "git show": (
        f"commit {'8f3c0d1e' * 5}\nAuthor: Ada <a@b>\n\n    Say it\n\n    More.\n\n",
        ("Say it. More.", "", ""),
    ),
    "hg": ("# HG changeset patch\n# User Ada\nSay it\n\nmore\n\n", ("Say it. more", "", "")),
    "DEP-3": (
        "Description: Say it\n more\nOrigin: upstream, x\n---\n",
        ("Say it more", "upstream, x", ""),
    ),
    "of another recipe": ("Why: a\nUpstream: b\nDrop when: c\n\n", ("a", "b", "c")),
    "a header in a mail": (sent("x", "Why: a\nUpstream: b\n\n---\n x\n"), ("a", "b", "")),
    "Subversion": ("Index: x\n===\n", ("", "", "")),
}


@pytest.mark.parametrize("kind", SAID)
def test_what_a_file_says_of_its_patch_is_the_header(tmp_path: Path, kind: str) -> None:
    head, said = SAID[kind]
    text = f"{head}--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    (found,) = reading.read(make_file(tmp_path / "given.patch", text))
    assert found.said == PatchHeader(*said)


def test_git_log_is_applied_from_its_end(tmp_path: Path) -> None:
    commit = "commit {}\nAuthor: Ada <a@b>\n\n    {}\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    text = commit.format("8" * 40, "second") + commit.format("9" * 40, "first")
    found = reading.read(make_file(tmp_path / "given.patch", text))
    assert [patch.subject for patch in found] == ["first", "second"]


NEW = "--- /dev/null\n+++ {}\n@@ -0,0 +1 @@\n+x\n"


@pytest.mark.parametrize(
    ("name", "depth"),
    [
        ("core/new.txt", 0),
        ("b/core/new.txt", 1),
        ("tree-1.8/core/new.txt", 1),
        ("/home/ada/tree/core/new.txt", 4),
        ("NEW", 0),
        ("b/NEW", 1),
    ],
)
def test_the_place_of_a_new_file_is_a_directory_that_exists(
    tmp_path: Path, name: str, depth: int
) -> None:
    make_folder(tmp_path / "core")
    assert adding._strip_depth(tmp_path, NEW.format(name)) == depth


def test_a_name_beyond_ascii_is_found_in_the_tree(tmp_path: Path) -> None:
    make_file(tmp_path / "dir ü/näme.txt", "1\n")
    name = 'dir \\303\\274/n\\303\\244me.txt"\t'
    text = f'--- "a/{name}\n+++ "b/{name}\n@@ -1 +1 @@\n-1\n+2\n'
    assert adding._strip_depth(tmp_path, text) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../../x", "/etc/x", "b/.git/hooks/x", "b/-x"])
def test_a_hostile_name_reaches_no_file(tmp_path: Path, name: str, add: Add) -> None:
    before = sorted(tmp_path.rglob("*x"))
    with fails(RecipeError, "given.patch"):
        add(NEW.format(name))
    assert sorted(tmp_path.rglob("*x")) == before


@pytest.mark.slow
def test_what_keeps_a_patch_from_fitting_is_named(text: str, add: Add) -> None:
    lines = text.splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if n > 8 and line.startswith("  "))
    made = "".join([*lines[:number], "  // New.\n", *lines[number:]])
    good = "".join(
        difflib.unified_diff(lines, made.splitlines(keepends=True), "a/" + EDITED, "b/" + EDITED)
    )
    backwards = difflib.unified_diff(["// Gone.\n", *lines], lines, EDITED, EDITED)
    zero = difflib.unified_diff(lines, made.splitlines(keepends=True), EDITED, EDITED, n=0)
    other = [*lines[:number], "  // Other.\n", *lines[number + 1 :]]
    replaced = difflib.unified_diff(lines, other, EDITED, EDITED, n=0)
    for content, says in (
        ("".join(backwards), "already"),
        (good.replace("\n   ", "\n \t"), "blanks"),
        (good.replace("@@\n ", "@@\n x"), "context"),
        (good.replace(" @@", "9 @@"), "damaged"),
        ("".join(good.splitlines(keepends=True)[:2]), "damaged"),
        ("".join(zero), "no lines of context"),
        ("".join(replaced), "no lines of context"),
        (good.replace(EDITED, "external/com_google_absl/a.h"), "an archive that Bazel unpacks"),
        (NEW.format(f"b/{EDITED}"), "makes a file that the tree"),
    ):
        with fails(RecipeError, "given.patch", says):
            add(content)
    assert add(good)
