"""The archives of two commits compared: substitutes, what is new, and whether it is still there."""

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tfwright.documents import recipe as recipes
from tfwright.errors import RecipeError
from tfwright.pipeline import external
from tfwright.pipeline.job import RecipeJob
from tfwright.rules.model import Rules
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
            recipe, path = recipes.read(name), recipes.find(name)
        except RecipeError:
            # A broken recipe must not keep another one from being ported.
            continue
        for key, table in recipe.fetch.substitutes.items():
            # Without a header of its own its text cannot be copied.
            with suppress(KeyError):
                if table.replaces in pinned:
                    toml_editing.section(path.read_text("utf-8"), (*SUBSTITUTES, key))
                    short = key.removesuffix("_archive").rpartition("_")[2]
                    patches = recipe.source.patches
                    belonging = [patch for patch in patches if short in Path(patch).name]
                    return OtherSubstitute(path, key, tuple(belonging))
    return None


def take_over(path: Path, name: str, other: OtherSubstitute) -> None:
    """Write the substitute of another recipe in the place of the one that no longer fits."""
    text = other.path.read_text("utf-8")
    # The text and not its values: line breaks and comments are the other author's.
    start, end = toml_editing.section(text, (*SUBSTITUTES, other.name))
    _, _, body = text[start:end].partition("\n")
    remove(path, name, f"[{'.'.join(SUBSTITUTES)}.{name}]\n{body}")


def remove(path: Path, name: str, replacement: str = "") -> None:
    """Remove a substitute, or put the lines of another table in its place."""
    try:
        toml_editing.put_section(path, (*SUBSTITUTES, name), replacement)
    except KeyError:
        # Written inline, as one line of another table: it makes room for a table of its own.
        toml_editing.without_key(path, (*SUBSTITUTES, name))
        if replacement:
            text = path.read_text("utf-8").rstrip("\n")
            files.write(path, f"{text}\n\n{replacement}")


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
    before, after = (
        {rule.sha256: rule for rule in rules.repositories if rule.sha256} for rules in (old, new)
    )
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
    lost = [row.name for row in rows if not (row.kept or row.left)]
    return ArchiveChange(
        unchanged=len(before.keys() & after.keys()),
        changed=tuple(sorted(fresh_names & names_before)),
        new=tuple(sorted(fresh_names - names_before)),
        gone=tuple(sorted(names_before - names_after)),
        # A rule may pin one archive for each platform.
        lost=tuple(dict.fromkeys(lost)),
    )
