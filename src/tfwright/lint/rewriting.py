"""`invoke lint --fix`: a recipe says what a person decides; the rest moves into other documents.

Text moves with its comments. A recipe that would mean anything else afterwards is left as it was.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tfwright.documents import recipe as recipes
from tfwright.documents.composing import ARCHIVES, PINS, PINS_HEAD, TOOLKITS, pins_text
from tfwright.documents.filesystem import INSTALLED, ROOT
from tfwright.documents.recipe import Recipe
from tfwright.documents.toml import Table, load, values_of
from tfwright.errors import RecipeError
from tfwright.facts import compatibility
from tfwright.tools import files, toml_editing

MOST_PACKAGES = 12
"""Packages that a list of a recipe may have; a longer one is what pip resolved."""
_HEADER = re.compile(r'^[ \t]*\[{1,2}[ \t]*([\w."-]+)[ \t]*\]{1,2}[ \t]*(#.*)?$')
_LIST = re.compile(
    r"(?ms)((?:^[ \t]*#[^\n]*\n)*)^[ \t]*requirements[ \t]*=[ \t]*"
    r"(\[[^\]\n]*\]|\[[ \t]*(?:#[^\n]*)?\n.*?^[ \t]*\])([^\n]*\n)"
)


@dataclass
class _Section:
    """A table of a recipe's text, with the comments above it."""

    name: str
    text: str

    def body(self) -> str:
        """Return its text for a document of its own, in which its table is not named."""
        outer, _, _ = self.name.partition(".")
        text = re.sub(rf"(?m)^[ \t]*\[[ \t]*{outer}[ \t]*\]", "", self.text)
        return re.sub(rf"(?m)^([ \t]*\[{{1,2}}[ \t]*){outer}\.", r"\1", text)


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

    One that another recipe makes with its axes has no file, and `lint` says why one does not load.
    """
    path = recipes.find(name, to_write=True)
    if not path.is_file():
        return []
    try:
        old, text = recipes.read(name), path.read_text("utf-8")
    except RecipeError:
        return []
    rewriting = _Rewriter(path, old, sections(text))
    rewriting.move_packages()
    rewriting.move_archives()
    rewriting.move_toolkit()
    made, now = rewriting.made, "".join(part.text for part in rewriting.parts)
    if not made and now == text:
        return []
    made[path] = re.sub(r"\n{3,}", "\n\n", now)
    before = {file: file.read_text("utf-8") if file.is_file() else None for file in made}
    with ExitStack() as undo:
        for file, content in before.items():
            if not file.parent.exists():
                undo.callback(files.remove, file.parent)
            undo.callback(files.remove, file) if content is None else undo.callback(
                toml_editing.write, file, content
            )
        for file, content in made.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            toml_editing.write(file, content)
        try:
            same = _content(recipes.read(name)) == _content(old)
        except RecipeError:
            same = False
        if not same:
            raise RecipeError(
                f"{path} cannot be rewritten: it would mean something else",
                remedy="Leave it as it is; the long form stays valid.",
            )
        undo.pop_all()
    return [file for file, content in made.items() if content != before[file]]


def _content(recipe: Recipe) -> dict[str, Any]:
    """Return what a recipe says; packages mean the same in any order."""
    values = recipe.model_dump()
    for name in ("host", "verify"):
        values[name]["requirements"] = sorted(values[name]["requirements"])
    return values


def _comments(listed: str) -> Iterator[str]:
    """Yield the comments in and behind a list of packages, each with the package that it is of."""
    for line in listed.splitlines():
        text, mark, comment = line.partition("#")
        named = "".join(f" {pin}:" for pin in re.findall(r"[\"'](.*?)[\"']", text)[-1:])
        if mark:
            yield f"#{named}{comment}\n"


@dataclass
class _Rewriter:
    """A recipe's text in parts, of which some move into documents of their own."""

    path: Path
    old: Recipe
    parts: list[_Section]
    made: dict[Path, str] = field(default_factory=dict)
    """The documents that are written, by their places."""

    def move_packages(self) -> None:
        """Move lists of packages that are longer than a person decides."""
        place = self.path.with_suffix(PINS)
        values = values_of(self.path)
        long = {
            name: values[name]["requirements"]
            for name in ("host", "verify")
            if len(values.get(name, {}).get("requirements", ())) > MOST_PACKAGES
        }
        if place.is_file():
            return
        comments = list[str]()
        moved = dict[str, list[str]]()
        for part in self.parts:
            if part.name in long and (found := _LIST.search(part.text)):
                comments += [*found[1].splitlines(keepends=True), *_comments(found[2] + found[3])]
                part.text = part.text[: found.start()] + part.text[found.end() :]
                moved[part.name] = long[part.name]
                del values[part.name]["requirements"]
        if not moved:
            return
        head = "".join([PINS_HEAD.format(recipe=self.path.name), *dict.fromkeys(comments)])
        self.made[place] = pins_text(head, values, moved.get("host", []), moved.get("verify", []))

    def move_archives(self) -> None:
        """Move substitutes and further sources."""
        moved = [part for part in self.parts if part.name.startswith("fetch.")]
        if not moved or any(part.name == "fetch" for part in self.parts):
            return
        old = self.old
        branch = old.name.split("-")[1] if "-" in old.name else old.name
        name = self._document_name(ARCHIVES, [branch, old.name], moved, old.fetch)
        count = len(old.fetch.substitutes)
        why = f"  # other sources of {count} archives whose servers are gone" if count else ""
        section = _Section("fetch", f'\n[fetch]\narchives = "{name}"{why}\n')
        self.parts.insert(self.parts.index(moved[0]), section)
        self.parts = [part for part in self.parts if part not in moved]

    def move_toolkit(self) -> None:
        """Move the packages of CUDA and its compiler."""
        moved = [part for part in self.parts if part.name.partition(".")[0] == "toolkit"]
        if not moved:
            return
        cuda, version = self.old.toolkit.cuda, self.old.host.cuda
        system = compatibility.debian_name(cuda.debian.suite if cuda and cuda.debian else "")
        stem = "-".join(filter(None, (f"cuda-{version}" if version else "cuda", system)))
        name = self._document_name(
            TOOLKITS, [stem, f"{stem}-{self.old.name}"], moved, self.old.toolkit
        )
        # A key of the top has to stand above all tables.
        top, *rest = [part for part in self.parts if part not in moved]
        part_names = ", ".join(part for part, _ in self.old.toolkit.parts())
        line = f'toolkit = "{name}"  # {part_names}, by checksum'
        self.parts = [_Section("", f"{top.text.rstrip()}\n{line}\n"), *rest]

    def _document_name(
        self, kind: str, names: Sequence[str], moved: Sequence[_Section], table: Table
    ) -> str:
        """Return the name of a document that says the same, or of a new one."""
        own = self.path.parent.resolve() == recipes.RECIPES.resolve()
        folder = (ROOT if own else self.path.parent) / kind
        for path in sorted(folder.glob("*.toml")):
            # Of one that does not load, `lint` says why.
            with suppress(RecipeError):
                if load(path, type(table)) == table:
                    return path.stem
        name = next(name for name in names if not (folder / f"{name}.toml").exists())
        schema = "toolkit" if kind == TOOLKITS else "archives"
        head = (
            f"#:schema ../recipes/schema/{schema}.json\n\n"
            if folder.parent == ROOT and not INSTALLED
            else ""
        )
        text = "".join(part.body() for part in moved)
        self.made[folder / f"{name}.toml"] = head + text.lstrip("\n")
        return name
