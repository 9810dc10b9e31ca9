"""Commands that look at wheels and builds, as a user types them."""

import json
from pathlib import Path

import pytest
from tests.remedies.following import CommandLine


def test_wheels_that_were_never_tried_are_an_empty_table(
    shell: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.succeeds("invoke smoke --runs")
    header, line = capsys.readouterr().out.splitlines()
    assert header.startswith("| wheel | Python | result |")
    assert set(line) == {"|", "-"}


def test_a_recipe_that_was_never_built_has_cost_nothing(
    shell: CommandLine, recipe_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.succeeds(f"invoke cost --recipe {recipe_file} --json")
    spent = json.loads(capsys.readouterr().out)
    assert (spent["stages"], spent["slowest"]) == ([], [])
