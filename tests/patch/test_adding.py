"""Patches as people have them, brought into the form of a recipe's patches."""

import difflib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.failing import fails
from tests.patch.test_writing import EDITED, job, job_of, path  # noqa: F401 fixtures

from tfwright.documents import recipe as recipes
from tfwright.errors import RecipeError
from tfwright.patch import adding
from tfwright.pipeline import engine
from tfwright.pipeline.job import RecipeJob
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


def asked(said: str) -> PatchHeader:
    return PatchHeader(said or "Because.", "none; a test", "the release is 2.0 or later.")


def diff(text: str, line: str, before: str = "a/", after: str = "b/") -> str:
    old = text.splitlines(keepends=True)
    new = [f"// {line}\n", *old]
    return "".join(difflib.unified_diff(old, new, before + EDITED, after + EDITED))


@pytest.fixture
def text(job: RecipeJob) -> str:  # noqa: F811 fixture
    return (job.places.tree / EDITED).read_text("utf-8")


FORMS: dict[str, Callable[[str], str]] = {
    "diff -u without folders": lambda text: diff(text, "Edited.", "", ""),
    "CRLF": lambda text: diff(text, "Edited.").replace("\n", "\r\n"),
    "no last line end": lambda text: diff(text, "Edited.").rstrip("\n"),
    "mail": lambda text: MAIL + diff(text, "Edited.") + "-- \n2.39.5\n\n",
    "byte order mark": lambda text: "\ufeff" + diff(text, "Edited."),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_patch_in_any_form_becomes_one_that_the_recipe_applies(
    job: RecipeJob,  # noqa: F811 fixture
    path: Path,  # noqa: F811 fixture
    tmp_path: Path,
    text: str,
    form: str,
) -> None:
    file = tmp_path / "given.patch"
    file.write_bytes(FORMS[form](text).encode())
    (made,) = adding.add(job, path, file, "", asked)
    assert made.files == (EDITED,)
    if form == "mail":
        assert made.path.name == "0002-say-that-it-is-edited.patch"
        assert patching.header(made.path).why == "Say that it is edited. It does not say so."
    again = job_of(path, tmp_path)
    engine.build(again)
    assert (again.places.tree / EDITED).read_text("utf-8").startswith("// Edited.\n")


@pytest.mark.slow
def test_each_mail_of_a_series_becomes_a_patch(
    job: RecipeJob,  # noqa: F811 fixture
    path: Path,  # noqa: F811 fixture
    tmp_path: Path,
    text: str,
) -> None:
    first = MAIL + diff(text, "Edited.")
    second = MAIL.replace("Say", "Repeat") + diff(f"// Edited.\n{text}", "Again.")
    file = tmp_path / "series.mbox"
    file.write_text(first + second, "utf-8")
    made = adding.add(job, path, file, "", asked)
    names = [each.path.name for each in made]
    assert names == ["0002-say-that-it-is-edited.patch", "0003-repeat-that-it-is-edited.patch"]
    assert "Edited" not in made[1].path.read_text("utf-8").partition("+// Again.")[0][-200:]
    again = job_of(path, tmp_path)
    engine.build(again)
    assert (again.places.tree / EDITED).read_text("utf-8").startswith("// Again.\n// Edited.\n")


@pytest.mark.slow
def test_a_rename_becomes_a_removed_and_a_new_file(
    job: RecipeJob,  # noqa: F811 fixture
    path: Path,  # noqa: F811 fixture
    tmp_path: Path,
) -> None:
    moved = EDITED.replace("matrix", "other")
    file = tmp_path / "rename.patch"
    names = f"rename from {EDITED}\nrename to {moved}\n"
    file.write_text(f"diff --git a/{EDITED} b/{moved}\nsimilarity index 100%\n{names}", "utf-8")
    (made,) = adding.add(job, path, file, "moved", asked)
    assert set(made.files) == {EDITED, moved}


@pytest.mark.slow
def test_a_patch_that_does_not_fit_leaves_tree_and_recipe_as_they_were(
    job: RecipeJob,  # noqa: F811 fixture
    path: Path,  # noqa: F811 fixture
    tmp_path: Path,
    text: str,
) -> None:
    file = tmp_path / "other.patch"
    file.write_text(diff("nothing\nof\nthis\n", "Edited."), "utf-8")
    before = path.read_text("utf-8")
    with fails(RecipeError, "other.patch", str(job.places.tree)):
        adding.add(job, path, file, "", asked)
    # A name that no recipe can have is refused after git has applied it.
    file.write_text("--- /dev/null\n+++ b/n\u00e4me\u00df x.txt\n@@ -0,0 +1 @@\n+x\n", "utf-8")
    with fails(RecipeError):
        adding.add(job, path, file, "", asked)
    assert path.read_text("utf-8") == before
    assert (job.places.tree / EDITED).read_text("utf-8") == text
    assert not list(job.places.tree.glob("n*x.txt"))
    assert recipes.read(str(path)).source.patches == job.recipe.source.patches
    assert replace(job)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"<!DOCTYPE html>\n<title>Fix by ada</title>\n--- a/x\n", "web page"),
        (b"\n<html><body>diff --git a/x b/x", "web page"),
        ("diff --git a/x b/x\n".encode("utf-16"), "UTF-8"),
        (b"Dear maintainer,\n", "no file"),
        (b"", "no file"),
    ],
)
def test_what_is_no_patch_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "given.patch"
    file.write_bytes(content)
    with fails(RecipeError, str(file), says):
        list(adding.read(file))
