"""`invoke schema`: JSON Schema of the documents that people write, made from the models.

Editors complete and check a recipe with it (Taplo reads the ``#:schema`` line at its head). The
descriptions are the docstrings of the models' fields, so each key is described in one place; the
tables of docs/recipe.md and docs/host.md are made from the same texts.
"""

import ast
import inspect
import json
import os
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic_core import PydanticUndefined

from tfwright.documents.filesystem import ROOT
from tfwright.documents.host_file import HostFile
from tfwright.documents.nightly import NightlyFile
from tfwright.documents.recipe import RECIPES, FetchTable, Recipe
from tfwright.documents.toml import Table
from tfwright.documents.toolkit import ToolkitTable
from tfwright.tools import files

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = RECIPES / "schema"
LINE = "#:schema ./schema/recipe.json"
"""The first line of each recipe in recipes/, by which editors find the schema."""
DOCUMENTS: dict[str, type[Table]] = {
    "recipe": Recipe,
    "host": HostFile,
    "nightly": NightlyFile,
    "toolkit": ToolkitTable,
    "archives": FetchTable,
}
"""The documents by the name of their schema file."""
NEVER_WRITTEN = {"Recipe": {"name"}}
"""Fields that no file holds: a recipe's name is that of its file."""
DERIVED = {"SourceTable": {"release"}}
"""Fields without a default that are read off others where they are missing."""
PAGES: dict[Path, type[Table]] = {
    ROOT / "docs/recipe.md": Recipe,
    ROOT / "docs/host.md": HostFile,
    ROOT / "docs/build-host.md": NightlyFile,
}
"""Pages that have a table of keys between two marks."""
_MARKED = re.compile(r"(<!-- keys:(\w*) -->\n).*?(<!-- /keys -->)", re.DOTALL)


def line_in(folder: Path) -> str:
    """Return the line by which an editor finds the schema of a recipe in a directory."""
    # Relative to the recipe, since an absolute path would name the author's machine.
    path = os.path.relpath(FOLDER.resolve() / "recipe.json", folder.resolve())
    return LINE if path == "schema/recipe.json" else f"#:schema {path}"


def with_comment(head: str, text: str, folder: Path) -> str:
    """Put a comment above the text of a recipe in `folder`, below the line that names its schema.

    A text without such a line gets none.
    """
    first, _, rest = text.partition("\n")
    if not first.startswith("#:schema "):
        return f"{head}\n\n{text.strip()}\n"
    # Editors look for the line at the very beginning only.
    return f"{line_in(folder)}\n\n{head}\n\n{rest.strip()}\n"


def schemas() -> dict[str, str]:
    """Return the text of each schema file by its name."""
    return {
        name: json.dumps(schema_of(model), indent=2) + "\n" for name, model in DOCUMENTS.items()
    }


def write() -> list[Path]:
    """Write the schemas and the pages' tables; return the files that changed."""
    texts = outdated_files()
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        files.write(path, text)
    return list(texts)


def outdated_files() -> dict[Path, str]:
    """Return the schema files and pages that are not what the models say, with their new text."""
    wanted = {FOLDER / f"{name}.json": text for name, text in schemas().items()}
    for page, model in PAGES.items():
        # A copy of the program alone has no pages to keep current.
        if page.is_file():
            wanted[page] = with_tables(page.read_text("utf-8"), model)
    return {
        path: text
        for path, text in wanted.items()
        if not path.is_file() or path.read_text("utf-8") != text
    }


def schema_of(model: type[Table]) -> dict[str, Any]:
    """Return the JSON Schema of a document, with the docstrings of its fields as descriptions."""
    schema = model.model_json_schema()
    for name, part in [(model.__name__, schema), *schema.get("$defs", {}).items()]:
        table = _tables(model).get(name)
        if table is not None:
            _describe(part, table)
        for value in part.get("properties", {}).values():
            # pydantic leaves it open, although the model takes no other key.
            if "patternProperties" in value:
                value["additionalProperties"] = False
    if toolkit := schema["properties"].get("toolkit"):
        # A name of a document stands for its table before the model sees it.
        toolkit["anyOf"] = [{"type": "string"}, {"$ref": toolkit.pop("$ref")}]
    return {"$schema": DIALECT, **schema, "title": f"tfwright: {model.__name__}"}


def _describe(part: dict[str, Any], table: type[Table]) -> None:
    """Put a table's own texts into its part of the schema."""
    part["description"] = _as_markdown(inspect.getdoc(table) or "")
    texts = field_docstrings(table)
    properties = part.get("properties", {})
    hidden = NEVER_WRITTEN.get(table.__name__, set())
    optional = hidden | DERIVED.get(table.__name__, set())
    # pydantic requires what has no default; a file may still leave out what is derived.
    part["required"] = [key for key in part.get("required", ()) if key not in optional]
    for name in hidden:
        properties.pop(name, None)
    for name, value in properties.items():
        value.pop("title", None)
        # A default that depends on where the checkout is would differ on each machine.
        if str(value.get("default", "")).startswith(str(ROOT)):
            del value["default"]
        if texts.get(name):
            value["description"] = _as_markdown(texts[name])


def _tables(model: type[Table]) -> dict[str, type[Table]]:
    """Return a document's tables by class name, nested ones included."""
    found = {model.__name__: model}
    for field in model.model_fields.values():
        for inner in _tables_in(field.annotation):
            # A table may hold tables of its own kind; ask for each class once.
            if inner.__name__ not in found:
                found |= _tables(inner)
    return found


def _tables_in(annotation: object) -> Iterator[type[Table]]:
    """Yield the tables that an annotation speaks of: in lists, dicts and unions as well."""
    if isinstance(annotation, type) and issubclass(annotation, Table):
        yield annotation
    for argument in get_args(annotation):
        yield from _tables_in(argument)


def field_docstrings(table: type[Table]) -> dict[str, str]:
    """Return the text below each field of a table, as its source has it."""
    # Python drops such texts when it compiles a class, so they are read from the source.
    tree = ast.parse(textwrap.dedent(inspect.getsource(table)))
    found: dict[str, str] = {}
    last = ""
    for node in tree.body[0].body:  # type: ignore[attr-defined]  # a class has a body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = node.target.id
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and last:
            found[last] = " ".join(str(node.value.value).split())
            last = ""
        else:
            last = ""
    return found


def _as_markdown(text: str) -> str:
    """Return reStructuredText's literals as Markdown has them."""
    return " ".join(text.replace("``", "`").split())


# Tables for people


@dataclass(frozen=True)
class KeyRow:
    """One key in a table of a page."""

    key: str
    default: str
    meaning: str


def with_tables(page: str, model: type[Table]) -> str:
    """Return a page with the tables between its marks made again.

    ``<!-- keys:source -->`` begins the table of ``[source]``, ``<!-- keys: -->`` that of the top.
    """
    return _MARKED.sub(lambda mark: f"{mark[1]}{_table_text(model, mark[2])}{mark[3]}", page)


def _table_text(model: type[Table], name: str) -> str:
    table = next(_tables_in(model.model_fields[name].annotation)) if name else model
    rows = "".join(f"| `{row.key}` | {row.default} | {row.meaning} |\n" for row in rows_of(table))
    return f"| key | default | meaning |\n|---|---|---|\n{rows}"


def rows_of(table: type[Table]) -> list[KeyRow]:
    """Return a table's keys in the order of the model."""
    texts = field_docstrings(table)
    hidden = NEVER_WRITTEN.get(table.__name__, set())
    rows = []
    for name, field in table.model_fields.items():
        if name in hidden:
            continue
        meaning = _as_markdown(texts.get(name, "")).replace("|", "\\|")
        derived = name in DERIVED.get(table.__name__, set())
        default = "derived" if derived else _default_text(field.default)
        rows.append(KeyRow(name, default, meaning))
    return rows


def _default_text(value: object) -> str:
    if value is PydanticUndefined:
        return "required"
    if value is None:
        return ""
    if isinstance(value, Table):
        return "table"
    if isinstance(value, Path):
        return f"`{value.name}`"
    return f"`{json.dumps(value, default=list)}`"
