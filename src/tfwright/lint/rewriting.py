"""`invoke lint --fix`: a recipe says what a person decides; the rest moves into other documents.

Text moves with its comments. A recipe that would mean anything else afterwards is left as it was.
"""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfwright.documents import recipe as recipes
from tfwright.documents.composing import ARCHIVES, PINS, PINS_HEAD, TOOLKITS, pins_text
from tfwright.documents.filesystem import INSTALLED, ROOT
from tfwright.documents.recipe import Recipe
from tfwright.documents.toml import Table, load, values_of
from tfwright.documents.toolkit import ToolkitTable
from tfwright.errors import RecipeError
from tfwright.facts import compatibility
from tfwright.tools import files

MOST_PACKAGES = 12
"""Packages that a list of a recipe may have; a longer one is what pip resolved."""
_HEADER = re.compile(r'^\[{1,2}([\w."-]+)\]{1,2}[ \t]*(#.*)?$')
_LIST = re.compile(r"(?ms)^((?:#[^\n]*\n)*)requirements = (\[[^\]\n]*\]|\[\n.*?^\])[^\n]*\n")


@dataclass
class _Section:
    """A table of a recipe's text, with the comments above it."""

    name: str
    text: str

    def body(self) -> str:
        """Return its text for a document of its own, in which its table is not named."""
        outer, _, _ = self.name.partition(".")
        return re.sub(rf"(?m)^(\[{{1,2}}){outer}\.", r"\1", self.text)


def sections(text: str) -> list[_Section]:
    """Split a document at the headers of its tables; joined, the sections are the text again."""
    found = [_Section("", "")]
    for line in text.splitlines(keepends=True):
        if header := _HEADER.match(line.rstrip("\n")):
            # What is above a header, up to the last line of the table before, belongs to it.
            before = found[-1]
            kept = re.sub(r"((?:^[ \t]*\n|^#[^\n]*\n)*)\Z", "", before.text, flags=re.MULTILINE)
            above = before.text[len(kept) :]
            before.text = kept
            found.append(_Section(header[1], above))
        found[-1].text += line
    return found


def rewrite(name: str) -> list[Path]:
    """Move toolkit, archives and packages of a recipe out of its file; return what was written.

    One that another recipe makes with its axes has no file.

    Raises RecipeError if the recipe does not load.
    """
    path = recipes.find(name, to_write=True)
    if not path.is_file():
        return []
    old, text = recipes.read(name), path.read_text("utf-8")
    folder = ROOT if path.parent.resolve() == recipes.RECIPES.resolve() else path.parent
    parts = sections(text)
    made: dict[Path, str] = {}
    parts = _packages(path, parts, made)
    parts = _archives(old, folder, parts, made)
    parts = _toolkit(old, folder, parts, made)
    if not made and "".join(part.text for part in parts) == text:
        return []
    made[path] = re.sub(r"\n{3,}", "\n\n", "".join(part.text for part in parts))
    before = {file: file.read_text("utf-8") if file.is_file() else None for file in made}
    with ExitStack() as undo:
        for file, content in before.items():
            undo.callback(files.remove, file) if content is None else undo.callback(
                files.write, file, content
            )
        for file, content in made.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            files.write(file, content)
        if _meaning(recipes.read(name)) != _meaning(old):
            raise RecipeError(
                f"{path} cannot be rewritten: it would mean something else",
                remedy="Leave it as it is; the long form stays valid.",
            )
        undo.pop_all()
    return [file for file, content in made.items() if content != before[file]]


def _meaning(recipe: Recipe) -> dict[str, Any]:
    """Return what a recipe says; packages mean the same in any order."""
    values = recipe.model_dump()
    for name in ("host", "verify"):
        values[name]["requirements"] = sorted(values[name]["requirements"])
    return values


def _packages(path: Path, parts: Sequence[_Section], made: dict[Path, str]) -> list[_Section]:
    """Move lists of packages that are longer than a person decides."""
    place = path.with_suffix(PINS)
    values = values_of(path)
    long = {
        name: values[name]["requirements"]
        for name in ("host", "verify")
        if len(values.get(name, {}).get("requirements", ())) > MOST_PACKAGES
    }
    for name in long:
        del values[name]["requirements"]
    if not long or place.is_file():
        return list(parts)
    comments, kept = [], list[_Section]()
    for part in parts:
        found = _LIST.search(part.text) if part.name in long else None
        if found:
            comments.append(found[1])
            text = part.text[: found.start()] + part.text[found.end() :]
            part = _Section(part.name, text)  # noqa: PLW2901 shorter
        kept.append(part)
    head = "".join([PINS_HEAD.format(recipe=path.name), *dict.fromkeys(comments)])
    text = pins_text(head, values, long.get("host", []), long.get("verify", []))
    made[place] = text
    return kept


def _archives(
    old: Recipe, folder: Path, parts: Sequence[_Section], made: dict[Path, str]
) -> list[_Section]:
    moved = [part for part in parts if part.name.startswith("fetch.")]
    if not moved or any(part.name == "fetch" for part in parts):
        return list(parts)
    branch = old.name.split("-")[1] if "-" in old.name else old.name
    text = "".join(part.body() for part in moved)
    name = _kept(folder / ARCHIVES, [branch, old.name], text, old.fetch, made)
    count = len(old.fetch.substitutes)
    why = f"  # other sources of {count} archives whose servers are gone" if count else ""
    return _replaced(parts, moved, _Section("fetch", f'\n[fetch]\narchives = "{name}"{why}\n'))


def _toolkit(
    old: Recipe, folder: Path, parts: Sequence[_Section], made: dict[Path, str]
) -> list[_Section]:
    moved = [part for part in parts if part.name.partition(".")[0] == "toolkit"]
    if not moved:
        return list(parts)
    suite = old.toolkit.cuda.debian.suite if old.toolkit.cuda and old.toolkit.cuda.debian else ""
    system = compatibility.debian_name(suite)
    stem = "-".join(filter(None, (f"cuda-{old.host.cuda}" if old.host.cuda else "cuda", system)))
    text = "".join(part.body() for part in moved)
    name = _kept(folder / TOOLKITS, [stem, f"{stem}-{old.name}"], text, old.toolkit, made)
    given = ", ".join(part for part, _ in old.toolkit.parts())
    top, *rest = _replaced(parts, moved, None)
    # A key of the top has to stand above all tables.
    line = f'toolkit = "{name}"  # {given}, by checksum'
    return [_Section("", f"{top.text.rstrip()}\n{line}\n"), *rest]


def _replaced(
    parts: Sequence[_Section], moved: Sequence[_Section], by: _Section | None
) -> list[_Section]:
    kept = list[_Section]()
    for part in parts:
        if part not in moved:
            kept.append(part)
        elif by and part is moved[0]:
            kept.append(by)
    return kept


def _kept(
    folder: Path, names: Sequence[str], text: str, table: Table, made: dict[Path, str]
) -> str:
    """Return the name of a document that says the same, or of a new one."""
    for path in sorted(folder.glob("*.toml")):
        if load(path, type(table)) == table:
            return path.stem
    name = next(name for name in names if not (folder / f"{name}.toml").exists())
    kind = "toolkit" if isinstance(table, ToolkitTable) else "archives"
    head = (
        "" if INSTALLED or folder.parent != ROOT else f"#:schema ../recipes/schema/{kind}.json\n\n"
    )
    made[folder / f"{name}.toml"] = head + text.lstrip("\n")
    return name
