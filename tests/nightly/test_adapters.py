"""Jobs of other engines, checked by the schemas that these publish where they are installed."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from tests.failing import fails
from tests.making import make_folder

from tfwright.documents.recipe import RECIPES
from tfwright.errors import RecipeError
from tfwright.nightly import fleets, page
from tfwright.nightly.builds import BuildOrder
from tfwright.progress import SILENCE

IMAGE = "registry.example/tfwright@sha256:0"
VALIDATORS = {
    "github": ("check-jsonschema", "--builtin-schema", "vendor.github-workflows"),
    "gitlab": ("check-jsonschema", "--builtin-schema", "vendor.gitlab-ci"),
    "buildkite": ("check-jsonschema", "--builtin-schema", "vendor.buildkite"),
    "kubernetes": ("kubernetes-validate", "--strict"),
}


@pytest.mark.parametrize("engine", page.ENGINES)
def test_each_engine_carries_out_an_order_for_the_recipe(engine: str) -> None:
    text = page.adapter(engine, "linux-r1.8-cpu", IMAGE)
    assert "nightly --order" in json.dumps(yaml.safe_load(text))
    assert "--recipe linux-r1.8-cpu" in text
    assert engine == "buildkite" or IMAGE in text


@pytest.mark.parametrize("engine", page.ENGINES)
def test_a_path_reaches_the_command_as_it_is(engine: str, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "it's #1 {{x}} $(id)")
    recipe = str(shutil.copy(RECIPES / "demo.toml", folder))
    words = str(yaml.safe_load(page.adapter(engine, recipe, IMAGE))).replace("\\'", "'")
    assert f"--recipe {shlex.quote(recipe)}" in words


@pytest.mark.parametrize("name", ["null", "1.10", "A_.b", "_"])
def test_engines_take_the_name_of_any_recipe(name: str, tmp_path: Path) -> None:
    recipe = str(shutil.copy(RECIPES / "demo.toml", tmp_path / f"{name}.toml"))
    jobs = {engine: yaml.safe_load(page.adapter(engine, recipe, IMAGE)) for engine in page.ENGINES}
    upload = jobs["github"]["jobs"]["build"]["steps"][-1]["with"]
    names = {jobs["kubernetes"]["metadata"]["name"], upload["name"], *jobs["gitlab"]}
    # As Kubernetes takes it.
    assert len(names) == 1
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", names.pop())


@pytest.mark.medium
@pytest.mark.parametrize("engine", VALIDATORS)
def test_the_schema_of_the_engine_accepts_it(engine: str, tmp_path: Path) -> None:
    validator = VALIDATORS[engine]
    if not shutil.which(validator[0]):
        pytest.skip(f"needs {validator[0]}")
    file = tmp_path / "job.yml"
    file.write_text(page.adapter(engine, "demo", IMAGE))
    subprocess.run([*validator, str(file)], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("engine", "recipe", "image", "named"),
    [
        ("jenkins", "demo", IMAGE, "'jenkins'"),
        ("github", "no-such-recipe", IMAGE, "no-such-recipe"),
        ("github", "demo", "x\n  privileged: true", "image"),
    ],
)
def test_what_would_fail_in_the_engine_is_refused_here(
    engine: str, recipe: str, image: str, named: str
) -> None:
    with fails(RecipeError, named):
        page.adapter(engine, recipe, image)


def test_the_schemas_name_every_file_of_the_protocol() -> None:
    found = json.loads(page.adapter("schema", "demo", IMAGE))
    assert found.keys() == {"order.json", "built.json"}
    assert found["order.json"]["properties"]["format"]["const"] == 1


def test_an_order_of_a_recipe_is_written_once(tmp_path: Path) -> None:
    fleets.write_recipe_order(tmp_path, "demo")
    order = BuildOrder.model_validate_json((tmp_path / "order.json").read_bytes())
    assert (order.format, order.target.name) == (1, "demo")
    assert order.fingerprint["the commit"]
    with fails(RecipeError, "an order already"):
        fleets.write_recipe_order(tmp_path, "demo")


def test_an_order_of_another_format_is_refused(tmp_path: Path) -> None:
    fleets.write_recipe_order(tmp_path, "demo")
    document = json.loads((tmp_path / "order.json").read_text())
    (tmp_path / "order.json").write_text(json.dumps(document | {"format": 2}))
    with fails(RecipeError, str(tmp_path)):
        fleets.carry_out(tmp_path, SILENCE)
