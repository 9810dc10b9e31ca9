import functools
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.making import Read
from tests.remedies.following import CommandLine

from tfwright.develop import schemas
from tfwright.documents import recipe as recipes
from tfwright.documents.composing import file_of
from tfwright.documents.recipe import Recipe

pytestmark = pytest.mark.medium


@functools.cache
def schema(document: str) -> Any:  # noqa: ANN401 as JSON gives it
    return json.loads(schemas.schemas()[document])


def errors(document: str, values: object) -> list[str]:
    """Return what the schema of a document says about values, as an editor would show it."""
    plain = json.loads(json.dumps(values, default=str))
    found = validator()(schema(document)).iter_errors(plain)
    return [error.message for error in found]


def validator() -> Any:  # noqa: ANN401 jsonschema has no types
    # Its import reads grammars, which took a fifth of collecting all tests.
    return pytest.importorskip("jsonschema").Draft202012Validator


def values_of(name: str) -> dict[str, Any]:
    return tomllib.loads(file_of(recipes.find(name)).read_text("utf-8"))


@pytest.mark.parametrize("document", schemas.DOCUMENTS)
def test_each_schema_is_valid_by_itself(document: str) -> None:
    validator().check_schema(schema(document))


@pytest.mark.parametrize("name", recipes.names())
def test_the_schema_accepts_every_bundled_recipe(name: str) -> None:
    assert errors("recipe", values_of(name)) == []


def test_the_schema_refuses_an_unknown_key() -> None:
    values = values_of("demo")
    values["bazel"]["versoin"] = "1"
    assert "'versoin' was unexpected" in errors("recipe", values)[0]


def test_the_schema_refuses_a_short_commit() -> None:
    values = values_of("demo")
    values["source"]["commit"] = "abc"
    assert "'abc' does not match" in errors("recipe", values)[0]


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("host", "requirements", ["six>=1"]),
        ("host", "requirements", ["numpy"]),
        ("source", "patches", ["../secret"]),
        ("source", "patches", ["/etc/passwd"]),
        ("source", "branch", "-rf"),
        ("source", "branch", "a..b"),
        ("source", "url", "ext::sh -c id"),
        ("source", "exclude", ["a\\b"]),
        ("configure", "answers", {"tf_need_cuda": False}),
        ("configure", "answers", {"TF_NEED_CUDA": "n\ny"}),
        ("configure", "program", "~/configure"),
        ("compile", "flags", ["--copt=-O2\n--copt=-O3"]),
        ("verified", "digests", {"weather": "1234"}),
    ],
)
def test_the_schema_refuses_what_the_model_refuses(table: str, key: str, value: object) -> None:
    values = values_of("demo")
    values.setdefault(table, {})[key] = value
    with pytest.raises(ValidationError):
        Recipe.model_validate({**values, "name": "demo"})
    assert errors("recipe", values)


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("host", "requirements", ["numpy==1.14.5", "a[b,c]==1!2.0+x"]),
        ("host", "requirements", ["six==1.0 --hash=sha256:" + "0" * 64]),
        ("source", "exclude", [".bazelrc", "a/..b/c", "a b/ü", "a..b"]),
        ("source", "branch", "v1.15.5+nv22.12"),
        ("source", "url", "file:///srv/tensorflow"),
        ("configure", "answers", {"CC_OPT_FLAGS": "", "A1": "ü"}),
        ("compile", "env", {"A_B": ""}),
    ],
)
def test_the_schema_takes_what_the_model_takes(table: str, key: str, value: object) -> None:
    values = values_of("demo")
    values.setdefault(table, {})[key] = value
    Recipe.model_validate({**values, "name": "demo"})
    assert errors("recipe", values) == []


def test_a_recipe_without_its_host_is_refused() -> None:
    values = values_of("demo")
    del values["host"]
    assert errors("recipe", values) == ["'host' is a required property"]


def test_every_key_is_described_by_the_docstring_of_its_field() -> None:
    described = schema("recipe")["$defs"]["CompileTable"]["properties"]
    assert described["flags"]["description"].startswith("Flags of `bazel build`")


def test_the_schemas_and_tables_in_the_checkout_are_those_of_the_models() -> None:
    assert [path.name for path in schemas.outdated_files()] == []


def test_a_table_is_made_again_between_its_marks() -> None:
    page = "before\n<!-- keys:bazel -->\nold\n<!-- /keys -->\nafter\n"
    made = schemas.with_tables(page, Recipe)
    assert made.startswith("before\n<!-- keys:bazel -->\n| key | default | meaning |\n")
    assert "| `version` | required |" in made
    assert made.endswith("<!-- /keys -->\nafter\n")


def test_a_schema_that_the_models_have_left_behind_is_written_again(
    shell: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: Read
) -> None:
    folder, page = tmp_path / "schema", tmp_path / "recipe.md"
    monkeypatch.setattr(schemas, "FOLDER", folder)
    absent = tmp_path / "absent.md"
    monkeypatch.setattr(schemas, "PAGES", {page: Recipe, absent: Recipe})
    page.write_text("<!-- keys: -->\nold\n<!-- /keys -->\n", "utf-8")
    shell.succeeds("invoke schema")
    written = [Path(line) for line in out().splitlines()]
    names = [folder / f"{name}.json" for name in schemas.DOCUMENTS]
    assert written == [*names, page]
    assert "| `summary` | required |" in page.read_text("utf-8")
    names[0].write_text("{}", "utf-8")
    shell.succeeds("invoke schema")
    assert out() == f"{names[0]}\n"
    assert json.loads(names[0].read_text("utf-8"))["$schema"]
