import json
from pathlib import Path

import pytest

from tfwright.commands.lint import (
    KeyChange,
    LintFinding,
    PlannedRecipe,
    RecipeChange,
)
from tfwright.terminal import lint as page

CHANGE = RecipeChange(
    ("mine",),
    (KeyChange("mine", "bazel.version", '"0.15.0"', '"0.15.2"'),),
    ("recipes/mine.toml",),
    ("invoke plan --recipe mine",),
)
PLAN = PlannedRecipe("mine", ("fetch", "source"), ("check",), ("no CUDA 9.2",))
FINDING = LintFinding(
    Path("mine.toml"), 3, "'peak = 2' has no reason", "Add one.", "reason"
)


def test_a_review_in_json_is_one_document(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page.show_review(CHANGE, [PLAN], [FINDING], as_json=True)
    review = json.loads(capsys.readouterr().out)
    assert review["recipes"] == ["mine"]
    assert review["plans"][0]["runs"] == ["fetch", "source"]
    assert review["findings"][0]["line"] == 3


def test_a_review_shows_keys_plans_commands_and_findings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page.show_review(CHANGE, [PLAN], [FINDING], as_json=False)
    shown = capsys.readouterr().out
    for text in (
        'bazel.version  "0.15.0" -> "0.15.2"',
        "runs   fetch, source",
        "not here:  no CUDA 9.2",
        "invoke plan --recipe mine",
        "mine.toml:3: 'peak = 2' has no reason [reason]",
    ):
        assert text in shown
