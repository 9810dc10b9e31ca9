"""The archives of two commits compared: substitutes, what is new, and whether it is still there."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Self

from tfwright.documents import recipe as recipes
from tfwright.documents.composing import file_of
from tfwright.documents.recipe import Recipe, SubstituteTable
from tfwright.errors import TfwrightError
from tfwright.pipeline import external
from tfwright.pipeline.job import RecipeJob
from tfwright.port.target import PortedPin, State
from tfwright.rules.model import Rules
from tfwright.rules.recognisers import DOWNLOADS
from tfwright.tools import files, toml_editing
from tfwright.vault import learning, links, lock, reach, substitutes
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
    commit: str
    """The commit that they were made for; empty where another repository has it."""
    programs: tuple[str, ...]
    """Those of that recipe's ``host.programs`` that its patches run."""


@dataclass(frozen=True)
class Substitutes:
    """Where the substitutes of a ported recipe are written: in its file, or in its archives'."""

    recipe: Path
    archives: Path | None = None
    """The new recipe's own copy of the document that it names."""

    def tables(self) -> list[tuple[Path, tuple[str, ...]]]:
        """Return each file that may have substitutes, with the key of their table in it."""
        other = [(self.archives, SUBSTITUTES[1:])] if self.archives else []
        return [(self.recipe, SUBSTITUTES), *other]

    def put_table(self, name: str, lines: str = "") -> None:
        """Replace the lines of a substitute's table, or add one; without lines it is removed."""
        for path, table in self.tables():
            text = f"[{'.'.join(table)}.{name}]\n{lines}" if lines else ""
            with suppress(KeyError):
                toml_editing.put_section(path, (*table, name), text)
                return
        # Written inline, as one line of another table: it makes room for a table of its own.
        toml_editing.remove_key(self.recipe, (*SUBSTITUTES, name))
        if lines:
            path, table = self.tables()[-1]
            before = path.read_text("utf-8").rstrip("\n")
            files.write(path, f"{before}\n\n[{'.'.join((*table, name))}]\n{lines}")

    def replace_texts(self, name: str, changes: Mapping[str, str]) -> None:
        """Replace texts in a substitute's table, its header included."""
        for path, table in self.tables():
            with suppress(KeyError):
                text = path.read_text("utf-8")
                start, end = toml_editing.find_section(text, (*table, name))
                lines = text[start:end]
                for old, new in changes.items():
                    lines = lines.replace(old, new)
                toml_editing.put_section(path, (*table, name), lines)

    def put_patches(self, name: str, patches: Sequence[str]) -> None:
        """Name the patches of a substitute that is still there."""
        for path, table in self.tables():
            with suppress(KeyError):
                toml_editing.find_section(path.read_text("utf-8"), (*table, name))
                toml_editing.put(path, (*table, name, "patches"), patches)


def name_of_archive(rules: Rules | None, sha256: str | None) -> str:
    """Return the name that a tree has for an archive with this checksum; empty if it has none."""
    found = rules.repositories if rules and sha256 else ()
    return min((rule.name for rule in found if rule.sha256 == sha256), default="")


def pins_named(rules: Rules | None, name: str) -> set[str]:
    """Return what a tree names so: checksums, commits of clones, urls of what has neither."""
    found = rules.repositories if rules else ()
    return {
        rule.sha256 or rule.commit or "".join(rule.urls[-1:]) for rule in found if rule.name == name
    }


def unreplaced_remedy(rules: Rules | None, name: str) -> str:
    """Say what to do where a tree pins something else by the name of a substitute."""
    found = [rule for rule in (rules.repositories if rules else ()) if rule.name == name]
    if found and all(rule.clone for rule in found):
        return (
            f"the tree clones {found[0].commit[:12]}, which a substitute does not replace. Patch "
            "the rule to declare an archive, or remove the substitute"
        )
    return (
        "the tree pins another archive, and no source on this host has it. Find a file for it; or "
        "write the 'replaces' that fetch prints, if the substitute does for it, too; or "
        "remove the substitute, if the target does not need it"
    )


def commit_changes(
    job: RecipeJob, name: str, table: SubstituteTable, old: Rules | None, new: Rules | None
) -> dict[str, str]:
    """Return what changes in a substitute that packs the commit of the old tree's archive.

    Empty where it does not, or where no source has the commit that the new tree names.
    """
    commits, archive = set[str](), None
    if old and new and table.commit and any(table.commit in url for url in _urls(old, name)):
        commits = {found for url in _urls(new, name) for found in re.findall(r"[0-9a-f]{40}", url)}
    if len(commits) != 1 or not new:
        return {}
    (commit,) = commits
    origins = Origins(job.host_file, job.places.git, job.offline)
    with suppress(TfwrightError):
        archive = substitutes.replaced_archive(name, new.repositories)
        packed = table.changed(commit=commit, sha256=learning.PLACEHOLDER)
        wanted = substitutes.wanted_archive(name, packed, archive)
        learned = learning.learn_checksum(
            wanted, origins, external.store(job), job.listener.progress
        )
        return {
            str(table.commit): commit,
            str(table.replaces): str(archive.sha256),
            table.sha256: learned.sha256,
        }
    return {}


def _urls(rules: Rules, name: str) -> list[str]:
    return [url for rule in rules.repositories if rule.name == name for url in rule.urls]


def other_substitutes(url: str) -> dict[str, OtherSubstitute]:
    """Return the substitutes of the recipes of this checkout by what they replace.

    `url` is the repository in which a commit of theirs is looked for.
    """
    found = dict[str, OtherSubstitute]()
    for recipe in recipes.readable_recipes():
        path = file_of(recipes.find(recipe.name))
        for key, table in recipe.fetch.substitutes.items():
            if not table.replaces or table.replaces in found:
                continue
            if lines := _table_lines(path, recipe, key):
                short = re.escape(key.removesuffix("_archive"))
                # What the substitute lacks is made in the file by which Bazel builds it.
                built = re.compile(rf"(?m)^\+\+\+ \S*/{short}(\.BUILD|/BUILD(\.bazel)?)$")
                named = (
                    patch
                    for patch in recipe.source.patches
                    if built.search(files.text(recipe.source.file(patch)))
                )
                patches = table.patches or tuple(named)
                added = "".join(files.text(recipe.source.file(patch)) for patch in patches)
                programs = tuple(
                    program
                    for program in recipe.host.programs
                    if re.search(rf"(?m)^\+.*\b{re.escape(program)}\b", added)
                )
                commit = recipe.source.commit if recipe.source.url == url else ""
                found[table.replaces] = OtherSubstitute(
                    recipe.name, key, lines, patches, commit, programs
                )
    return found


def find_substitute(
    pinned: Collection[str], others: Mapping[str, OtherSubstitute]
) -> OtherSubstitute | None:
    """Return the substitute for one of these checksums; None if there is none."""
    return next((others[pin] for pin in pinned if pin in others), None)


def _table_lines(path: Path, recipe: Recipe, name: str) -> str:
    """Return the lines of a substitute as its author wrote them; empty if it has no header."""
    for file, table in [(path, SUBSTITUTES), *((doc, SUBSTITUTES[1:]) for doc in recipe.documents)]:
        text = file.read_text("utf-8")
        with suppress(KeyError):
            start, end = toml_editing.find_section(text, (*table, name))
            return text[start:end].partition("\n")[2]
    return ""


@dataclass(frozen=True)
class ComparedArchives:
    """The archives of two trees by checksum: upstream renames rules without another archive."""

    before: Mapping[str, str]
    """Checksum = name in the old tree."""
    after: Mapping[str, str]
    lost: frozenset[str]
    """Names of those that only the new tree has, and no source on this host."""
    unneeded: frozenset[str]
    """Names of archives that no build with a lock file needed."""
    names: frozenset[str]
    """All that the new tree names, what it clones included."""

    @classmethod
    def of(cls, old: Rules, new: Rules, job: RecipeJob, locked: Path | None) -> Self:
        """Compare the rules of two trees, and ask for what only the new one has.

        Nothing is downloaded for that. `locked` is the lock file of the old recipe.
        """
        # What a rule's own code downloads, as local_config_cuda does a clang, depends on answers.
        before, after = (
            {
                rule.sha256: rule.name
                for rule in rules.repositories
                if rule.sha256 and rule.rule not in DOWNLOADS
            }
            for rules in (old, new)
        )
        fresh = tuple(rule for rule in new.repositories if rule.sha256 in after.keys() - before)
        origins = Origins(job.host_file, job.places.git, job.offline, job.recipe.fetch)
        wanted = reach.wanted_archives(replace(new, repositories=fresh), {}, None)
        store = external.store(job)
        pairs = [(archive, origins) for archive in wanted]
        rows = links.ask_sources(pairs, store, job.listener.progress, deep=False)
        # One file may be that of several rules, and a rule may pin one for each platform.
        lost = [row.name.split(", ") for row in rows if not (row.kept or row.left)]
        needed: dict[str, bool] = {}
        for path in {*recipes.RECIPES.glob("*.lock"), *([locked] if locked else ())}:
            for entry in lock.read(path).archives:
                for name in entry.names if entry.needed is not None else ():
                    needed[name] = needed.get(name, False) or bool(entry.needed)
        return cls(
            before,
            after,
            frozenset(chain.from_iterable(lost)),
            frozenset(name for name, yes in needed.items() if not yes),
            frozenset(rule.name for rule in new.repositories),
        )

    def is_available(self, name: str) -> bool:
        """Return whether a source has the archive that only the new tree pins by this name."""
        return name in self._new_names and name not in self.lost

    @property
    def _new_names(self) -> set[str]:
        return {self.after[sha256] for sha256 in self.after.keys() - self.before.keys()}

    def pins(self, substituted: Collection[str]) -> Iterator[PortedPin]:
        """List the archives that are new, changed or gone, and those that no server has any more.

        Those that are `substituted` have a finding of their own.
        """
        yield PortedPin("archive", "unchanged", "fits", str(len(self.before.keys() & self.after)))
        fresh = self._new_names.difference(substituted)
        lost, before = fresh & self.lost, {*self.before.values()}
        gone = {self.before[sha256] for sha256 in self.before.keys() - self.after.keys()}
        found: tuple[tuple[str, State, set[str]], ...] = (
            ("changed", "fits", fresh & before - lost),
            ("new", "fits", fresh - before - lost),
            ("gone", "fits", gone - self.names),
            ("from no source on this host", "look", lost - self.unneeded),
            (
                "from no source, and not needed by any recipe with a lock file",
                "fits",
                lost & self.unneeded,
            ),
        )
        # No reader of rules knows what the target needs.
        needed = ". A build needs only some of them, and names the one that it stops for"
        for name, state, names in found:
            if names:
                says = ", ".join(sorted(names)) + (needed if state == "look" else "")
                yield PortedPin("archive", name, state, says)
