"""The archives of two commits compared: substitutes, what is new, and whether it is still there."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tfwright.documents import recipe as recipes
from tfwright.documents.composing import file_of
from tfwright.documents.recipe import Recipe
from tfwright.errors import RecipeError
from tfwright.pipeline import external
from tfwright.pipeline.job import RecipeJob
from tfwright.port.target import PortedPin, State
from tfwright.rules.model import Rules
from tfwright.tools import files, toml_editing
from tfwright.vault import links, lock, reach
from tfwright.vault.origins import Origins

SUBSTITUTES = ("fetch", "substitutes")


@dataclass(frozen=True)
class OtherSubstitute:
    """A substitute of another recipe, which already replaces the archive that the new tree pins."""

    recipe: str
    name: str
    """Its name in that recipe."""
    lines: str
    """The lines of its table."""
    patches: tuple[str, ...]
    """Patches of that recipe that seem to belong to it, by their names."""


@dataclass(frozen=True)
class Substitutes:
    """Where the substitutes of a ported recipe are written: in its file, or in its archives'."""

    recipe: Path
    archives: Path | None = None
    """The new recipe's own copy of the document that it names."""

    def places(self) -> list[tuple[Path, tuple[str, ...]]]:
        """Return each file that may have substitutes, with the key of their table in it."""
        other = [(self.archives, SUBSTITUTES[1:])] if self.archives else []
        return [(self.recipe, SUBSTITUTES), *other]

    def put(self, name: str, lines: str = "") -> None:
        """Replace the lines of a substitute's table; without lines it is removed."""
        for path, table in self.places():
            text = f"[{'.'.join(table)}.{name}]\n{lines}" if lines else ""
            with suppress(KeyError):
                toml_editing.put_section(path, (*table, name), text)
                return
        # Written inline, as one line of another table: it makes room for a table of its own.
        toml_editing.without_key(self.recipe, (*SUBSTITUTES, name))
        if lines:
            before = self.recipe.read_text("utf-8").rstrip("\n")
            header = ".".join((*SUBSTITUTES, name))
            files.write(self.recipe, f"{before}\n\n[{header}]\n{lines}")

    def put_patches(self, name: str, patches: Sequence[str]) -> None:
        """Name the patches of a substitute that is still there."""
        for path, table in self.places():
            with suppress(KeyError):
                toml_editing.section(path.read_text("utf-8"), (*table, name))
                toml_editing.put(path, (*table, name, "patches"), patches)


def checksums(rules: Rules | None, name: str) -> set[str]:
    """Return what a tree names so: checksums, commits of clones, urls of what has neither."""
    found = rules.repositories if rules else ()
    return {
        rule.sha256 or rule.commit or "".join(rule.urls[-1:]) for rule in found if rule.name == name
    }


def replacing(pinned: set[str]) -> OtherSubstitute | None:
    """Return a recipe of this checkout that has a substitute for one of these checksums."""
    for name in recipes.names():
        try:
            recipe, path = recipes.read(name), file_of(recipes.find(name))
        except RecipeError:
            # A broken recipe must not keep another one from being ported.
            continue
        for key, table in recipe.fetch.substitutes.items():
            lines = _lines(path, recipe, key) if table.replaces in pinned else ""
            if lines:
                short = key.removesuffix("_archive").rpartition("_")[2]
                named = tuple(patch for patch in recipe.source.patches if short in Path(patch).name)
                return OtherSubstitute(name, key, lines, table.patches or named)
    return None


def _lines(path: Path, recipe: Recipe, name: str) -> str:
    """Return the lines of a substitute as its author wrote them; empty if it has no header."""
    for file, table in [(path, SUBSTITUTES), *((doc, SUBSTITUTES[1:]) for doc in recipe.documents)]:
        text = file.read_text("utf-8")
        with suppress(KeyError):
            start, end = toml_editing.section(text, (*table, name))
            return text[start:end].partition("\n")[2]
    return ""


def compared(
    old: Rules | None, new: Rules | None, job: RecipeJob, locked: Path | None
) -> Iterator[PortedPin]:
    """List the archives that are new, changed or gone, and those that no server has any more.

    What the old lock file knows the target not to need, the new one does not need either.
    """
    if old is None or new is None:
        yield PortedPin("archive", "all", "look", "the rules of one of the trees cannot be read")
        return
    # By checksum: upstream renames rules, and moves URLs, without another archive.
    before, after = (
        {rule.sha256: rule for rule in rules.repositories if rule.sha256} for rules in (old, new)
    )
    yield PortedPin("archive", "unchanged", "fits", str(len(before.keys() & after.keys())))
    fresh = [rule for sha256, rule in after.items() if sha256 not in before]
    names_before = {rule.name for rule in before.values()}
    names_after = {rule.name for rule in after.values()}
    fresh_names = {rule.name for rule in fresh}
    substituted = job.recipe.fetch.substitutes
    asked = tuple(rule for rule in fresh if rule.name not in substituted)
    wanted = reach.wanted(replace(new, repositories=asked), {}, None)
    origins = Origins(job.host_file, job.places.git, job.offline, job.recipe.fetch)
    # Nothing is downloaded for that.
    pairs = [(archive, origins) for archive in wanted]
    rows = links.report(pairs, external.store(job.job), job.listener.progress, deep=False)
    # A rule may pin one archive for each platform.
    lost = dict.fromkeys(row.name for row in rows if not (row.kept or row.left))
    known = lock.read(locked).archives if locked else ()
    unneeded = {name for entry in known if entry.needed is False for name in entry.names}
    found: tuple[tuple[str, State, Sequence[str]], ...] = (
        ("changed", "look", sorted(fresh_names & names_before)),
        ("new", "look", sorted(fresh_names - names_before)),
        ("gone", "fits", sorted(names_before - names_after)),
        # Bazel wants only some of them, so that a missing one need not stop the build.
        ("from no source on this host", "look", [name for name in lost if name not in unneeded]),
        (
            "from no source, and not needed by the old target",
            "fits",
            sorted(unneeded.intersection(lost)),
        ),
    )
    for name, state, names in found:
        if names:
            yield PortedPin("archive", name, state, ", ".join(names))
