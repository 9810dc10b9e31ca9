"""What a change of the checkout means for its recipes, as a reviewer needs it."""

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfwright.build import plan as plans
from tfwright.build import verified
from tfwright.documents import composing
from tfwright.documents import recipe as recipes
from tfwright.documents.filesystem import INSTALLED, ROOT
from tfwright.errors import RecipeError, ToolError
from tfwright.pipeline.job import RecipeJob
from tfwright.progress import SILENCE
from tfwright.tools.git import program
from tfwright.tools.process.command import Command

_Document = Mapping[str, object]
_WITHIN = ("--", "recipes", "toolkits", "archives", "patches", "templates")
"""The last arguments of a git that looks where what decides about recipes lies."""


@dataclass(frozen=True)
class KeyChange:
    """One key of a recipe that differs between two revisions."""

    recipe: str
    key: str
    before: str
    """Empty where the key is new."""
    after: str
    """Empty where the key is gone."""


@dataclass(frozen=True)
class RecipeChange:
    """What a change of the checkout means for its recipes."""

    recipes: tuple[str, ...]
    """The recipes whose file, lock, patches or assets differ; deleted ones are left out."""
    keys: tuple[KeyChange, ...]
    files: tuple[str, ...]
    """The files that differ, relative to the checkout."""
    tests: tuple[str, ...]
    """The commands that show whether the changed recipes still work."""


def change_since(revision: str) -> RecipeChange:
    """Return what this checkout changed since it left a git revision: what that got since is not.

    Raises RecipeError if git does not know the revision here.
    """
    # Resolved first: what a person types must not become an option.
    commit = _git_or_empty("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    if not commit:
        raise RecipeError(
            f"{revision!r} is not a revision of a git repository in {ROOT}",
            remedy="Name one that 'git branch --all' or 'git tag' lists, or leave --changed out. A "
            "shallow clone has few: run 'git fetch origin main', then --changed FETCH_HEAD.",
        )
    # Of a history that is cut off, git sees no common beginning.
    left = _git_or_empty("merge-base", commit, "HEAD") or commit
    # Without renames, both names of a moved file are listed.
    differing = _git("diff", "-z", "--relative", "--name-only", "--no-renames", left, *_WITHIN)
    # A new recipe is looked at before it is committed.
    new = _git("ls-files", "-z", "--others", "--exclude-standard", *_WITHIN)
    files = tuple(filter(None, f"{differing}{new}".split("\0")))
    changed = {Path(file).stem for file in files if file.startswith("recipes/")}
    changed.update(_recipes_using(files) if files else ())
    # A deleted recipe is among the changes, but cannot be planned or built.
    present = tuple(sorted(changed.intersection(recipes.names())))
    keys = tuple(change for name in present for change in _key_changes(left, name))
    commands = ("plan --recipe {}", "build --recipe {} --until configure")
    tests = [f"invoke {command}".format(name) for name in present for command in commands]
    tests += ["pytest tests/test_recipes.py"] if present and not INSTALLED else []
    return RecipeChange(present, keys, files, tuple(tests))


def _recipes_using(files: Sequence[str]) -> Iterator[str]:
    """Yield the recipes that name one of these files: a patch, an asset, a toolkit, archives.

    One that does not load is among them: a file that is gone may be why.
    """
    for name in recipes.names():
        try:
            recipe = recipes.read(name)
        except RecipeError:
            yield name
            continue
        named = {f"patches/{file}" for file in recipe.source.named_files}
        # Documents of this checkout, as git names them.
        named |= {
            str(path.relative_to(ROOT)) for path in recipe.documents if path.is_relative_to(ROOT)
        }
        if named.intersection(files):
            yield name


@dataclass(frozen=True)
class PlannedRecipe:
    """What a build of a recipe would do on this host, in short."""

    recipe: str
    runs: tuple[str, ...]
    """The stages that would run."""
    keeps: tuple[str, ...]
    """The stages whose result would be kept."""
    hindered: tuple[str, ...]
    """What keeps this host from building it."""
    stale: str = ""
    """What changed since it was verified."""


def plan_recipe(job: RecipeJob) -> PlannedRecipe:
    """Return the plan of a recipe as a reviewer needs it; nothing is run and nothing changed."""
    # What it notes is of one recipe among several.
    stages, findings = plans.plan(replace(job, listener=SILENCE))
    runs, keeps = list[str](), list[str]()
    for stage in stages:
        (runs if stage.why else keeps).append(stage.stage.name)
    hindered = tuple(str(finding) for finding in findings)
    stale = verified.stale(job.recipe)
    return PlannedRecipe(job.recipe.name, tuple(runs), tuple(keeps), hindered, stale)


def _git(*arguments: str) -> str:
    """Run git in ROOT, which may lie below the top of its repository; return what it prints."""
    command = Command(("git", *arguments), ROOT, program.variables(ROOT), here=True, brief=True)
    return program.run(command)


def _git_or_empty(*arguments: str) -> str:
    try:
        return _git(*arguments).strip()
    except ToolError:
        return ""


def _key_changes(tree: str, name: str) -> Iterator[KeyChange]:
    """Yield the keys and the resolved packages of a recipe that differ; comments do not count."""
    own = composing.file_of(ROOT / "recipes" / f"{name}.toml")
    # A recipe of an axis that is new, or gone, has the keys of another one.
    keys = _differing_values(tree, own, _flat_values)
    packages = _differing_values(tree, own.with_name(name + composing.PINS), _package_versions)
    for key, (before, after) in {**keys, **packages}.items():
        yield KeyChange(name, key, before, after)


def _differing_values(
    tree: str, path: Path, flat: Callable[[_Document], dict[str, str]]
) -> dict[str, tuple[str, str]]:
    """Return what differs in a document between a revision and now, by key."""
    now = path.read_text("utf-8", "replace") if path.is_file() else ""
    found = []
    for text in (_git_or_empty("show", f"{tree}:./{path.relative_to(ROOT)}"), now):
        try:
            found.append(flat(tomllib.loads(text)))
        except (ValueError, RecursionError):
            # Other syntax, and tables within tables: a finding of its own.
            found.append({})
    before, after = found
    # All keys of what cannot be read now would look as if they were removed.
    keys = sorted(before.keys() | after.keys()) if after or not path.is_file() else ()
    pairs = {key: (before.get(key, ""), after.get(key, "")) for key in keys}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def _flat_values(table: _Document, prefix: str = "") -> dict[str, str]:
    """Return the values of nested tables by dotted key."""
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat_values(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = json.dumps(value, default=str)
    return flat


def _package_versions(table: _Document) -> dict[str, str]:
    """Return the versions of the packages in a document of them, by list and name."""
    return {
        f"{key}.{composing.project_name(line)}": line.partition("==")[2]
        for key, lines in table.items()
        for line in (lines if isinstance(lines, list) else ())
        if isinstance(line, str)
    }
