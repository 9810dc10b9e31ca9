"""Commands that choose a recipe, as a user types them."""

import json
from pathlib import Path

import pytest
from tests.making import Read, change_text
from tests.remedies.following import CommandLine, add
from tests.upstream import commit, run_git

from tfwright.documents import recipe as recipes
from tfwright.recipes import writing

pytestmark = pytest.mark.medium


def test_doctor_ends_as_the_build_would_that_it_examines(
    shell: CommandLine, recipe_file: Path, out: Read
) -> None:
    change_text(recipe_file, 'python = "any"', 'python = "2.4"')
    assert shell.status(f"invoke doctor --recipe {recipe_file} --json") == 3
    # Shown as what was found, and not as an error of the command.
    assert shell.fault is None
    (finding,) = [found for found in json.loads(out())["findings"] if found["blocks"]]
    assert "2.4" in finding["found"]


def test_a_new_recipe_is_of_the_newest_release_for_the_machine(
    shell: CommandLine, tmp_path: Path
) -> None:
    commit(tmp_path / "upstream", {"WORKSPACE": ""})
    run_git("branch", "r2.6", cwd=tmp_path / "upstream")
    add(shell.host_file, f'[mirrors]\n"{writing.URL}" = "{tmp_path}/upstream"\n')
    shell.succeeds(f"invoke new --os Linux --python 3.6 --folder {tmp_path}/upstream")
    (written,) = (tmp_path / "upstream").glob("*.toml")
    assert recipes.read(str(written)).source.branch == "r2.6"
