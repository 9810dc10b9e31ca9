"""The archives of two commits compared: substitutes, what is new, and whether it is still there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfwright.documents import recipe as recipes
from tfwright.errors import RecipeError
from tfwright.pipeline import external
from tfwright.pipeline.job import RecipeJob
from tfwright.rules.model import Repository, Rules
from tfwright.tools import files, toml_editing
from tfwright.vault import links, reach
from tfwright.vault.origins import Origins

SUBSTITUTES = ("fetch", "substitutes")


@dataclass(frozen=True)
class OtherSubstitute:
    """A recipe that already replaces the archive that the new tree pins."""

    path: Path
    name: str
    """Its name in that recipe."""
    patches: tuple[str, ...]
    """Patches of that recipe that seem to belong to it, by their names."""


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
            recipe = recipes.read(name)
        except RecipeError:
            # A broken recipe must not keep another one from being ported.
            continue
        for key, table in recipe.fetch.substitutes.items():
            if table.replaces in pinned and _stands_alone(recipes.find(name), key):
                short = key.removesuffix("_archive").rpartition("_")[2]
                belonging = [patch for patch in recipe.source.patches if short in Path(patch).name]
                return OtherSubstitute(recipes.find(name), key, tuple(belonging))
    return None


def _stands_alone(path: Path, name: str) -> bool:
    """Say whether a substitute has a header of its own, so that its text can be copied."""
    try:
        toml_editing.section(path.read_text("utf-8"), (*SUBSTITUTES, name))
    except KeyError:
        return False
    return True


def take_over(path: Path, name: str, other: OtherSubstitute) -> None:
    """Write the substitute of another recipe in the place of the one that no longer fits."""
    text = other.path.read_text("utf-8")
    # The text and not its values: line breaks and comments are the other author's.
    start, end = toml_editing.section(text, (*SUBSTITUTES, other.name))
    _, _, body = text[start:end].partition("\n")
    _replace(path, name, f"[{'.'.join(SUBSTITUTES)}.{name}]\n{body}")


def remove(path: Path, name: str) -> None:
    """Remove a substitute."""
    _replace(path, name, "")


def _replace(path: Path, name: str, lines: str) -> None:
    try:
        toml_editing.put_section(path, (*SUBSTITUTES, name), lines)
    except KeyError:
        # Written inline, as one line of another table: it makes room for a table of its own.
        toml_editing.without_key(path, (*SUBSTITUTES, name))
        if lines:
            text = path.read_text("utf-8").rstrip("\n")
            files.write(path, f"{text}\n\n{lines}")


@dataclass(frozen=True)
class ArchiveChange:
    """How the archives of two commits differ; by rule's name."""

    unchanged: int
    changed: tuple[str, ...]
    """Pinned by both, to other bytes."""
    new: tuple[str, ...]
    gone: tuple[str, ...]
    lost: tuple[str, ...]
    """Among the new and changed ones, those that no source gives any more."""


def compared(old: Rules, new: Rules, job: RecipeJob) -> ArchiveChange:
    """Compare what two commits pin, and ask for what only the new one pins."""
    # By checksum: upstream renames rules, and moves URLs, without another archive.
    before, after = _by_checksum(old), _by_checksum(new)
    fresh = [rule for sha256, rule in after.items() if sha256 not in before]
    names_before = {rule.name for rule in before.values()}
    names_after = {rule.name for rule in after.values()}
    fresh_names = {rule.name for rule in fresh}
    return ArchiveChange(
        unchanged=len(before.keys() & after.keys()),
        changed=tuple(sorted(fresh_names & names_before)),
        new=tuple(sorted(fresh_names - names_before)),
        gone=tuple(sorted(names_before - names_after)),
        # A rule may pin one archive for each platform.
        lost=tuple(dict.fromkeys(_lost(fresh, new, job))),
    )


def _by_checksum(rules: Rules) -> dict[str, Repository]:
    return {rule.sha256: rule for rule in rules.repositories if rule.sha256}


def _lost(fresh: Sequence[Repository], rules: Rules, job: RecipeJob) -> Iterator[str]:
    """Yield the names of archives that no source gives; nothing is downloaded for that."""
    substituted = job.recipe.fetch.substitutes
    asked = tuple(rule for rule in fresh if rule.name not in substituted)
    wanted = reach.wanted(replace(rules, repositories=asked), {}, None)
    origins = Origins(job.host_file, job.places.git, job.offline, job.recipe.fetch)
    store = external.store(job.job)
    for row in links.report(wanted, store, origins, job.listener.progress, deep=False):
        if not (row.kept or row.left):
            yield row.name
