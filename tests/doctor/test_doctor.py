import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.making import make_file

from tfwright.doctor import inventory, requirements
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import ROOT
from tfwright.host import probes

pytestmark = pytest.mark.medium


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_can_be_held_against_this_host(name: str) -> None:
    recipe, host = recipes.read(name), probes.this_host()
    findings = requirements.examine(recipe, HostFile(), host)
    assert all(finding.found and finding.wanted and finding.remedy for finding in findings)
    assert inventory.HostInventory(recipe, HostFile(), host).facts()[0].name == "system"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no path of this checkout decide what is found."""
    file = make_file(tmp_path / "host.toml", f'build_out = "{tmp_path / "build_out"}"\n')
    monkeypatch.setenv("TFWRIGHT_HOST_FILE", str(file))


def doctor(recipe: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "invoke", "doctor", "--recipe", recipe, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


def test_a_host_that_can_build_is_told_so_by_the_exit_status() -> None:
    status, said = doctor("demo")
    assert (status, said["may_start"]) == (0, True)
    assert all(fact["by"] for fact in said["facts"] if fact["value"])


@pytest.mark.parametrize(("name", "told"), [("linux-r1.8-cpu", True), ("demo", False)])
def test_what_a_build_of_tensorflow_takes_is_known_before_it_begins(
    name: str, *, told: bool
) -> None:
    cost = requirements.forecast(recipes.read(name))
    assert ("hours of processor time" in cost) is told


@pytest.mark.skipif(sys.platform == "darwin", reason="the recipe could be built here")
def test_a_host_that_cannot_build_ends_as_the_build_would() -> None:
    status, said = doctor("macos-r1.8-cuda9.2")
    assert (status, said["may_start"]) == (3, False)
    assert said["findings"][0]["blocks"] in {"check", "configure"}
    assert isinstance(said["findings"][0]["remedy"], list)
