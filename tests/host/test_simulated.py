"""Whole hosts, simulated: a person read what doctor says on each; expected/ keeps it.

To keep what it says now, run TFWRIGHT_KEEP=1 pytest tests/host/test_simulated.py, and read the
difference.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.making import Read

from tfwright.doctor import inventory, page, requirements
from tfwright.doctor.inventory import Finding
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.host.probes import Host

EXPECTED = Path(__file__).parent / "expected"
RECIPES = Path(__file__).parent / "recipes"
HOSTS = ("container-cuda10.0", "cuda13", "laptop-nouveau", "mac-cuda9.2", "ubuntu-18.04-cuda10.1")
Description = dict[str, Any]
Reader = Callable[[str], Description]
Player = Callable[[Description], Host]


def settings_of(description: Description) -> HostFile:
    build_out = Path(description["env"]["HOME"]) / "build_out"
    return HostFile(build_out=build_out, **description.get("settings", {}))


@pytest.mark.parametrize("name", HOSTS)
def test_doctors_whole_output_is_the_reviewed_one(
    name: str, described: Reader, play: Player, out: Read
) -> None:
    description = described(name)
    host, host_file = play(description), settings_of(description)
    recipe = recipes.read(description["recipe"])
    facts = inventory.HostInventory(recipe, host_file, host).facts()
    page.show_examination(recipe.name, facts, requirements.examine(recipe, host_file, host))
    said = f"On a simulated host, {name}.toml:\n\n{out()}"
    if os.environ.get("TFWRIGHT_KEEP"):
        (EXPECTED / f"{name}.txt").write_text(said, "utf-8")
    assert said == (EXPECTED / f"{name}.txt").read_text("utf-8")


def changed(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a description, or a recipe, with some values replaced, those of a table one by one."""
    merged = {
        key: {**values.get(key, {}), **value} if isinstance(value, Mapping) else value
        for key, value in changes.items()
    }
    return {**values, **merged}


def examined(description: Description, play: Player) -> list[Finding]:
    """Hold a host against its recipe; ``asks`` is what is changed in that."""
    asked = recipes.read(description["recipe"]).model_dump(mode="json")
    recipe = Recipe.model_validate(changed(asked, description.get("asks", {})))
    return requirements.examine(recipe, settings_of(description), play(description))


CHANGES = tomllib.loads(Path(__file__).with_name("violations.toml").read_text("utf-8"))


def mended(description: Description, name: str) -> Description:
    """Return a host as it fits its recipe."""
    changes = CHANGES["mended"].get(name, {})
    if "recipe" in changes:
        changes = {"recipe": str(RECIPES / changes["recipe"])}
    return changed(description, changes)


@pytest.mark.parametrize(
    "violation", CHANGES["violation"], ids=lambda row: f"{row['host']}: {row['found']}"
)
def test_one_thing_wrong_on_a_fitting_host_is_found_with_its_remedy(
    violation: dict[str, Any], described: Reader, play: Player
) -> None:
    fitting = mended(described(violation["host"]), violation["host"])
    findings = examined(changed(fitting, violation), play)
    told = [finding for finding in findings if finding.found.startswith(violation["found"])]
    assert told, [finding.found for finding in findings]
    assert violation["remedy"] in told[0].remedy


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_made_for_its_recipe_has_nothing_wrong(
    name: str, described: Reader, play: Player
) -> None:
    assert examined(mended(described(name), name), play) == []


def test_a_full_temporary_directory_is_named_with_another_one_to_choose(
    described: Reader, play: Player
) -> None:
    host = described("cuda13")
    full = "Filesystem 1024-blocks Used Available Capacity Mounted on\ntmpfs 1024 1024 0 100% /tmp"
    programs = {"/usr/bin/df": {**host["programs"]["/usr/bin/df"], "-Pk /tmp": full}}
    files = {"/tmp/x": "", "/proc/mounts": "tmpfs /tmp tmpfs rw 0 0"}  # noqa: S108 played
    findings = examined(changed(host, {"programs": programs, "files": files}), play)
    (found,) = [finding for finding in findings if "/tmp" in finding.found]  # noqa: S108 played
    assert found.blocks == "compile"
    assert "TMPDIR=/PATH invoke build" in found.remedy


def test_a_proxy_without_a_scheme_is_named_with_one(described: Reader, play: Player) -> None:
    host = described("cuda13")
    findings = examined(changed(host, {"env": {"https_proxy": "proxy.example:3128"}}), play)
    (found,) = [finding for finding in findings if "proxy" in finding.found]
    assert found.remedy == "export https_proxy=http://proxy.example:3128"
    assert not found.blocks
