"""A recipe in several files: what a machine resolves, and what recipes share, in documents.

A recipe names its toolkit and its archives; the packages that pip resolved lie next to it.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tfwright.documents.faults import line_of
from tfwright.documents.filesystem import ROOT, SHIPPED
from tfwright.documents.names import HERMETIC_PYTHON_NAMES, PackagePin, inner_path
from tfwright.documents.toml import Table, load, values_of
from tfwright.errors import RecipeError
from tfwright.printable import did_you_mean

TOOLKITS, ARCHIVES = "toolkits", "archives"
"""Folders of the documents that recipes name."""
PINS_HEAD = "# Resolved by pip for {recipe}; 'invoke pin' writes it.\n"
OUTDATED = "the packages were resolved for another Python, or other packages of the recipe"
_OF_AXIS = re.compile(r"(?P<recipe>.+)-py(?P<python>[0-9][0-9]{1,2})")
PINS = ".pins"
"""How the name of the packages' document ends; it begins as its recipe's."""


class PinsFile(Table):
    """The packages that `invoke pin` resolved for a recipe, in addition to those it names.

    A package that the recipe names itself has the recipe's version.
    """

    resolved_for: str = ""
    """A short checksum of the target Python and the packages that the recipe named at that time."""
    both: tuple[PackagePin, ...] = ()
    """Packages of the build that verify installs as well."""
    build: tuple[PackagePin, ...] = ()
    """Packages of the build only: they join ``host.requirements``."""
    verify: tuple[PackagePin, ...] = ()
    """Packages of the test only: they join ``verify.requirements``."""


def file_of(path: Path) -> Path:
    """Return the file with the text of a recipe: that of ``r-py313`` may be ``r``, by its axes."""
    found = _OF_AXIS.fullmatch(path.stem)
    return path if path.is_file() or not found else path.with_name(found["recipe"] + path.suffix)


def recipe_values(path: Path) -> dict[str, Any]:
    """Return what a recipe's own file says, for the Python of its axes that the path names."""
    file = file_of(path)
    values = values_of(file)
    if file != path:
        apply_axis(values, path)
    return values


def apply_axis(values: dict[str, Any], path: Path) -> None:
    """Put the Python that the name of a recipe says into its values, in the flags as well."""
    digits = path.stem.rpartition("-py")[2]
    python = f"{digits[0]}.{digits[1:]}"
    del values["axes"]
    values["summary"] = f"{values.get('summary')} (Python {python})"
    set_python(values, python)


def set_python(values: dict[str, Any], python: str) -> None:
    """Put another Python into the values of a recipe, in Bazel's flags as well."""
    # Anything else is a fault, which the model describes.
    if isinstance(host := values.get("host"), dict):
        for name in HERMETIC_PYTHON_NAMES:
            set_flag(values, name, str(host.get("python")), python)
        host["python"] = python


def set_flag(values: dict[str, Any], name: str, before: str, now: str) -> None:
    """Change a setting in Bazel's flags too, where a recipe repeats it there."""
    table = values.get("compile")
    flags = table.get("flags") if isinstance(table, dict) else None
    if isinstance(table, dict) and isinstance(flags, list | tuple):
        table["flags"] = [
            flag.replace(f"{name}={before}", f"{name}={now}") if isinstance(flag, str) else flag
            for flag in flags
        ]


def names_on_axes(path: Path) -> list[str]:
    """Return the names of the recipes that a file makes with its axes, its own first."""
    try:
        axes = values_of(path).get("axes", {}) if "[axes]" in path.read_text("utf-8") else {}
    except (RecipeError, OSError, ValueError):
        # Reading the recipe says what is wrong with it.
        axes = {}
    pythons = axes.get("python", ()) if isinstance(axes, dict) else ()
    digits = (python.replace(".", "") for python in pythons if isinstance(python, str))
    return [path.stem, *(f"{path.stem}-py{each}" for each in digits)]


def other_paths(path: Path) -> list[Path]:
    """Return where the recipes that a file makes with its axes would lie, without its own."""
    return [path.with_name(f"{name}.toml") for name in names_on_axes(path)[1:]]


def named_packages(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the packages that a recipe's own file names, by the key of their list.

    The document need not have been checked: anything may stand anywhere.
    """
    found = {}
    for table in ("host", "verify"):
        content = values.get(table)
        lines = content.get("requirements") if isinstance(content, Mapping) else None
        found[f"{table}.requirements"] = lines if isinstance(lines, list) else []
    return found


def pins_head(place: Path) -> str:
    """Return the comments with which a document of packages begins: they stay, if it is written."""
    return "".join(re.findall(r"\A(?:#.*\n)+", place.read_text("utf-8")))


def pins_text(
    head: str, values: Mapping[str, Any], build: Sequence[str], verify: Sequence[str]
) -> str:
    """Return the document of the packages that pip resolved for a recipe of such values."""
    both = [pin for pin in build if pin in verify]
    text = f'{head}resolved_for = "{_resolved_for(values)}"\n'
    for name, pins in (
        ("both", both),
        ("build", [pin for pin in build if pin not in both]),
        ("verify", [pin for pin in verify if pin not in both]),
    ):
        if pins:
            text += "".join([f"{name} = [\n", *(f'    "{pin}",\n' for pin in pins), "]\n"])
    return text


def copied_pins(old: Path, new: Path) -> Iterator[tuple[Path, str]]:
    """Yield place and text of the packages of each of a recipe's axes, for a copy of it."""
    for name in names_on_axes(old):
        if (place := old.with_name(name + PINS)).is_file():
            copied = new.stem + name.removeprefix(old.stem)
            head, own = (PINS_HEAD.format(recipe=f"{one}.toml") for one in (name, copied))
            yield new.with_name(copied + PINS), place.read_text("utf-8").replace(head, own, 1)


def has_outdated_pins(path: Path) -> bool:
    """Say whether a recipe names other packages or another Python than pip resolved for it."""
    place = path.with_suffix(PINS)
    resolved_for = load(place, PinsFile).resolved_for if place.is_file() else ""
    # An earlier tfwright did not write it.
    return bool(resolved_for) and resolved_for != _resolved_for(recipe_values(path))


def _resolved_for(values: Mapping[str, Any]) -> str:
    lists = [sorted(map(str, lines)) for lines in named_packages(values).values()]
    host = values.get("host")
    python = host.get("python") if isinstance(host, Mapping) else None
    return hashlib.sha256(json.dumps([python, *lists]).encode()).hexdigest()[:16]


@dataclass
class Composing:
    """The values of a recipe, as its other documents complete them."""

    path: Path
    fill_in: Callable[[dict[str, Any]], None] | None = None
    """Puts values in the place of what a document leaves open; None for one that must not."""
    documents: list[Path] = field(default_factory=list)
    """The other files that the recipe is made of."""

    def complete(self, values: dict[str, Any]) -> None:
        """Put what the documents say into the values of the recipe's own file.

        Raises RecipeError for a document that is missing, or does not fit its model.
        """
        from tfwright.documents.recipe import FetchTable
        from tfwright.documents.toolkit import ToolkitTable

        if (file := file_of(self.path)) != self.path:
            apply_axis(values, self.path)
            self.documents.append(file)
        if isinstance(named := values.get("toolkit"), str):
            parts = self._document(TOOLKITS, named, ("toolkit",), ToolkitTable)
            # One that says more than the recipe needs serves it as well.
            if isinstance(host := values.get("host"), dict):
                optional = {"nccl", "tensorrt"} - {*host}
                parts = {name: part for name, part in parts.items() if name not in optional}
            values["toolkit"] = parts
        fetch = values.get("fetch")
        if isinstance(fetch, dict) and isinstance(named := fetch.get("archives"), str):
            shared = self._document(ARCHIVES, named, ("fetch", "archives"), FetchTable)
            # The recipe's own come last: a substitute of the same name wins, a source is one more.
            own, sources = fetch.get("substitutes", {}), fetch.get("sources", [])
            # Anything else is a fault, which the model describes.
            if isinstance(own, dict) and isinstance(sources, list):
                fetch["substitutes"] = {**shared.get("substitutes", {}), **own}
                fetch["sources"] = [*shared.get("sources", []), *sources]
        self._add_packages(values)

    def _document(
        self, folder: str, name: str, key: tuple[str, ...], model: type[Table]
    ) -> dict[str, Any]:
        path = self.find(folder, name, key)
        self.documents.append(path)
        fill_in = self.fill_in
        # Checked by itself, so that a fault is shown with its own file and line.
        load(path, model, complete=fill_in and (lambda values: fill_in({key[0]: values})))
        return values_of(path)

    def find(self, folder: str, name: str, key: tuple[str, ...]) -> Path:
        """Return the file of a name: next to the recipe, or in ROOT, or in SHIPPED.

        A path is as it is.
        """
        here = self.path.resolve().parent
        places = [here / folder, ROOT / folder, SHIPPED / folder]
        try:
            inner_path(name)
            if name.endswith(".toml"):
                places, file = [here], name
            else:
                file = f"{name}.toml"
            for place in places:
                # A link must not lead to a file elsewhere on the host.
                found = (place / file).resolve()
                if found.is_file() and found.is_relative_to(place.resolve()):
                    return found
        # ValueError: no inner path; OSError: too long for a file system.
        except (ValueError, OSError):
            pass
        where = f"{self.path}:{line_of(file_of(self.path).read_text('utf-8'), key)}"
        known = sorted({path.stem for place in places for path in place.glob("*.toml")})
        raise RecipeError(
            f"{where}: {'.'.join(key)}: no document {name[:200]!r}{did_you_mean(name, known)}",
            remedy=f"Name a file of {folder}/, here or in the recipe's directory, without .toml; "
            "or write the path of one from there, which ends in .toml.",
            where=where,
        )

    def _add_packages(self, values: dict[str, Any]) -> None:
        path = self.path.with_suffix(PINS)
        if not path.is_file():
            return
        self.documents.append(path)
        pins = load(path, PinsFile)
        resolved = {"host": (*pins.both, *pins.build), "verify": (*pins.both, *pins.verify)}
        for name, lines in resolved.items():
            table = values.setdefault(name, {}) if lines else None
            own = table.get("requirements", []) if isinstance(table, dict) else None
            # Anything else is a fault, which the model describes.
            if isinstance(own, list) and all(isinstance(line, str) for line in own):
                table["requirements"] = merge_packages(own, lines)  # type: ignore[index]  # seen above


def merge_packages(own: list[str], resolved: tuple[str, ...]) -> list[str]:
    """Return packages of a recipe with those that were resolved, by name; its own ones win."""
    if not resolved:
        return own
    named = {project_name(line) for line in own}
    return sorted(
        [*own, *(line for line in resolved if project_name(line) not in named)], key=project_name
    )


def project_name(line: str) -> str:
    """Return the name, as indexes compare it, with which a requirement begins."""
    found = re.match(r"[\w.-]+", line)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else line
