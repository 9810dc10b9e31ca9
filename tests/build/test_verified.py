import datetime as dt
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.failing import fails
from tests.making import make_file
from tests.remedies.following import CommandLine

from tfwright.build import verified
from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import Recipe
from tfwright.errors import RecipeError
from tfwright.host import probes
from tfwright.host.place import NOTHING
from tfwright.lint import recipes as lint


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return a copy of the demo's recipe, verified just now."""
    path = Path(shutil.copy(recipes.find("demo"), tmp_path / "mine.toml"))
    verified.write(path, parts_of(path), until="publish", where="Debian 12", by="Ada")
    return path


def parts_of(path: Path) -> dict[str, str]:
    return verified.part_checksums(recipes.read(str(path)), None)


def changed(path: Path, before: str, after: str) -> Recipe:
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), "utf-8")
    return recipes.read(str(path))


def test_what_is_written_names_stage_host_and_person_and_holds(copied: Path) -> None:
    recipe = recipes.read(str(copied))
    assert recipe.verified
    assert (recipe.verified.until, recipe.verified.by) == ("publish", "Ada")
    assert verified.stale(recipe) == ""


def test_the_rest_of_the_recipe_stays_as_it_was_written(copied: Path) -> None:
    before = recipes.find("demo").read_text("utf-8").partition("[verified]")[0]
    assert copied.read_text("utf-8").partition("[verified]")[0] == before


LATER = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=9)


@pytest.mark.parametrize(
    ("before", "after", "stale"),
    [
        ("[bazel]", "# Why.\n[bazel]", ""),
        ('summary = "', 'summary = "New: ', ""),
        ("digests = ", 'note = "Nice."\ndigests = ', ""),
        ("peak = ", "peak = 1", "recipe changed"),
        ('until = "publish"', 'until = "compile"', "[verified] itself changed"),
        ('by = "Ada"', 'by = "Grace"', "[verified] itself changed"),
        ('host = "', 'host = "Another ', "[verified] itself changed"),
        ("\non = ", "\non = 2024-01-01 # ", "[verified] itself changed"),
        ("\non = ", f"\non = {LATER} # ", f"{LATER} has not come yet"),
    ],
)
def test_a_recipe_is_stale_by_what_decides_the_wheel_or_what_was_said_of_it(
    copied: Path, before: str, after: str, stale: str
) -> None:
    assert verified.stale(changed(copied, before, after)) == stale


def test_a_table_that_a_person_wrote_is_not_believed(copied: Path) -> None:
    text = copied.read_text("utf-8")
    kept = [line for line in text.splitlines() if not line.startswith("digests")]
    copied.write_text("\n".join(kept), "utf-8")
    assert verified.stale(recipes.read(str(copied))) == "no checksums"


def test_a_wheel_of_before_tensorflow_is_not_believed(copied: Path) -> None:
    recipe = changed(copied, "\non = ", "\non = 1970-01-01 # ")
    (found,) = [finding for finding in lint.lint(str(copied)) if finding.rule == "verified"]
    assert "1970-01-01" in found.what
    assert verified.stale(recipe)


@pytest.mark.parametrize("key", ["by", "host"])
def test_an_empty_statement_is_refused(copied: Path, key: str) -> None:
    lines = copied.read_text("utf-8").splitlines()
    lines = [f'{key} = " "' if x.startswith(f"{key} = ") else x for x in lines]
    copied.write_text("\n".join(lines), "utf-8")
    with fails(RecipeError, f"verified.{key}"):
        recipes.read(str(copied))


def test_what_was_edited_during_the_build_is_not_verified(copied: Path) -> None:
    """The parts are taken before the build, which may take hours."""
    recipe = recipes.read(str(copied))
    before = verified.part_checksums(recipe, None)
    make_file(copied.with_suffix(".lock"), "")
    verified.write(copied, before, until="publish", where="Debian 12", by="Ada")
    assert verified.stale(recipes.read(str(copied))) == "lock changed"


def test_what_another_bazel_built_says_so_keeps_the_note_and_holds(
    shell: CommandLine, copied: Path
) -> None:
    other = f'[bazels."0.26.1"]\npath = "{copied}"\nversion = "4.2.3"\n'
    shell.host_file.write_text(shell.host_file.read_text("utf-8") + other, "utf-8")
    changed(copied, 'by = "Ada"\n', 'by = "Ada"\nnote = "two substitutes"\n')
    shell.succeeds(f"invoke build --recipe {copied} --until check --verified-by Ada")
    recipe = recipes.read(str(copied))
    assert recipe.verified
    assert recipe.verified.note == "two substitutes"
    assert recipe.verified.host.endswith("; Bazel 4.2.3 in place of 0.26.1")
    assert verified.stale(recipe) == ""


def test_a_stage_that_does_not_exist_is_refused(copied: Path) -> None:
    with fails(RecipeError, "verified.until"):
        changed(copied, 'until = "publish"', 'until = "done"')


def test_what_a_build_writes_needs_no_reason(copied: Path) -> None:
    table = copied.read_text("utf-8").partition("[verified]")[2]
    assert "digests = " in table
    assert lint.lines_without_reason(f"[verified]{table}") == []


def test_a_host_without_os_release_has_a_name_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = SimpleNamespace(release=NOTHING, system="Linux", machine="x86_64")
    monkeypatch.setattr(probes, "this_host", lambda: bare)
    assert verified.describe_host() == "Linux, x86_64"
