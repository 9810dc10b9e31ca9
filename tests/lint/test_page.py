from pathlib import Path

import pytest
from tests.making import Read

from tfwright.lint import page
from tfwright.lint.changes import KeyChange, PlannedRecipe, RecipeChange
from tfwright.lint.recipes import LintFinding

CHANGE = RecipeChange(
    ("mine",),
    (KeyChange("mine", "bazel.version", '"0.15.0"', '"0.15.2"'),),
    ("recipes/mine.toml",),
    ("invoke plan --recipe mine",),
)
PLAN = PlannedRecipe("mine", ("fetch", "source"), ("check",), ("no CUDA 9.2",), "patches changed")
FINDING = LintFinding(Path("mine.toml"), 3, "'peak = 2' has no reason", "Add one.", "reason")


def test_a_review_shows_keys_plans_commands_and_findings(out: Read) -> None:
    page.show_review(CHANGE, [PLAN], [FINDING])
    shown = out()
    for text in (
        'bazel.version  "0.15.0" -> "0.15.2"',
        "runs   fetch, source",
        "not here:  no CUDA 9.2",
        "[verified] is stale: patches changed",
        "invoke plan --recipe mine",
        "mine.toml:3: 'peak = 2' has no reason [reason]",
    ):
        assert text in shown


def test_a_change_of_no_recipe_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    page.show_review(RecipeChange((), (), (), ()), [], [])
    said = capsys.readouterr()
    assert "No recipe, patch or template differs." in said.err
    assert "run next" not in said.out


def test_the_keys_of_each_recipe_stand_under_its_name(out: Read) -> None:
    change = RecipeChange(
        ("one", "two", "three"),
        (
            KeyChange("one", "bazel.version", "", '"0.15.2"'),
            KeyChange("two", "host.cuda", '"9.2"', ""),
            KeyChange("three", "host.cuda", "", '"9.2"'),
            KeyChange("three", "summary", "", '"Three"'),
        ),
        ("recipes/one.toml", "recipes/two.toml"),
        (),
    )
    kept = PlannedRecipe("one", (), ("check",), ())
    page.show_review(change, [kept], [])
    shown = out().splitlines()
    assert shown[:6] == [
        "one",
        '  bazel.version  (new) -> "0.15.2"',
        "two",
        '  host.cuda  "9.2" -> (removed)',
        # Its file shows the keys.
        "three  (new)",
        "files",
    ]
    assert not any("  runs" in line for line in shown)
