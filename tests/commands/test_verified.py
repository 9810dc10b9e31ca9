import shutil
from pathlib import Path

import pytest

from tfwright.commands import lint, verified
from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import Recipe
from tfwright.errors import RecipeError


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return a copy of the demo's recipe, verified just now."""
    path = Path(shutil.copy(recipes.find("demo"), tmp_path / "mine.toml"))
    verified.write(path, recipes.read(str(path)), until="publish", by="Ada")
    return path


def changed(path: Path, before: str, after: str) -> Recipe:
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), "utf-8")
    return recipes.read(str(path))


def test_what_is_written_names_stage_host_and_person_and_holds(
    copied: Path,
) -> None:
    recipe = recipes.read(str(copied))
    assert recipe.verified
    assert (recipe.verified.until, recipe.verified.by) == ("publish", "Ada")
    assert verified.stale(recipe, None) == ""


def test_the_rest_of_the_recipe_stays_as_it_was_written(copied: Path) -> None:
    before = recipes.find("demo").read_text("utf-8").partition("[verified]")[0]
    assert copied.read_text("utf-8").partition("[verified]")[0] == before


def test_another_summary_or_comment_changes_nothing(copied: Path) -> None:
    changed(copied, "[bazel]", "# Why.\n[bazel]")
    assert (
        verified.stale(changed(copied, 'summary = "', 'summary = "New: '), None)
        == ""
    )


def test_a_changed_pin_makes_it_stale(copied: Path) -> None:
    recipe = changed(copied, "peak = ", "peak = 1")
    assert verified.stale(recipe, None) == "recipe changed"


def test_a_lock_that_came_later_makes_it_stale(copied: Path) -> None:
    lock = copied.with_suffix(".lock")
    lock.write_text("", "utf-8")
    assert verified.stale(recipes.read(str(copied)), lock) == "lock changed"


def test_a_table_that_a_person_wrote_is_not_believed(copied: Path) -> None:
    text = copied.read_text("utf-8")
    kept = [line for line in text.splitlines() if not line.startswith("digests")]
    copied.write_text("\n".join(kept), "utf-8")
    assert verified.stale(recipes.read(str(copied)), None) == "no digests"


def test_a_stage_that_does_not_exist_is_refused(copied: Path) -> None:
    with pytest.raises(RecipeError, match=r"verified.until"):
        changed(copied, 'until = "publish"', 'until = "done"')


def test_what_a_build_writes_needs_no_reason(copied: Path) -> None:
    recipe = recipes.read(str(copied))
    verified.write(copied, recipe, until="publish", by="a person", note="a note")
    table = copied.read_text("utf-8").partition("[verified]")[2]
    assert "digests = " in table
    assert lint.without_reason(f"[verified]{table}") == []


def test_a_host_without_os_release_has_a_name_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent() -> dict[str, str]:
        raise OSError("no os-release file found")

    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.freedesktop_os_release", absent)
    assert verified.host().startswith("Linux, ")
