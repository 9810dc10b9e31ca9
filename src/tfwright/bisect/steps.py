"""The way from what was good to what fails, one change at a time.

First come the tables of the recipe, then its patches, then the commits, and the lock file last.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfwright.build.verified import DESCRIBING
from tfwright.documents.recipe import Recipe, SourceTable
from tfwright.nightly.builds import PATCHES, CommitLine, KeptInputs
from tfwright.tools import files

UNTRIED = DESCRIBING | {"source"}
"""Tables that decide no wheel, and the one that has steps of its own."""
OWN_STEPS = ("patches", "assets", "commit")
"""What of [source] changes in steps of its own."""


@dataclass(frozen=True)
class BisectStep:
    """One change on the way from good to bad, with everything as it is after that change."""

    title: str
    inputs: KeptInputs
    commit: str = ""
    """The commit, if the step is one."""

    @property
    def key(self) -> str:
        """What no other step of a bisection has; a model with mappings cannot be hashed."""
        return self.commit or self.title


def steps_between(
    good: KeptInputs, bad: KeptInputs, commits: Sequence[CommitLine], folder: Path
) -> Iterator[BisectStep]:
    """Yield each change from one build's inputs to the other's.

    `commits` are those after the good one up to the bad one, oldest first. Patches are assembled in
    `folder`, since a step may need some of the good build and some of the bad one.
    """
    digests = [files.sha256(each.locked) if each.locked else "" for each in (good, bad)]
    relocked = digests[0] != digests[1]
    # A lock file pins what one recipe downloads. Neither lock fits a recipe between the two, so
    # the trials between them go without one.
    locked = None if relocked else good.locked
    now = good.recipe.changed(name=bad.recipe.name)
    for table in Recipe.model_fields:
        if table not in UNTRIED and getattr(now, table) != getattr(bad.recipe, table):
            now = now.model_copy(update={table: getattr(bad.recipe, table)})
            yield BisectStep(f"the recipe's [{table}]", KeptInputs(now, locked))
    for title, source in _source_changes(now.source, bad.recipe.source, folder):
        now = now.changed(source=source)
        yield BisectStep(title, KeptInputs(now, locked))
    for line in commits:
        now = now.changed(source=now.source.changed(commit=line.commit))
        title = f"commit {line.commit[:12]} {line.subject}"
        title += f", by {line.author}" if line.author else ""
        yield BisectStep(title, KeptInputs(now, locked), line.commit)
    if relocked:
        yield BisectStep("the lock file", replace(bad, recipe=now))


def _source_changes(
    now: SourceTable, bad: SourceTable, folder: Path
) -> Iterator[tuple[str, SourceTable]]:
    """Yield the changes of [source], except for the commit."""
    kept = {name: getattr(now, name) for name in OWN_STEPS}
    others = bad.changed(**kept)
    # Compared without the folders in which the two look for their patches.
    if others.model_dump() != now.model_dump():
        # It looks for its patches where the good one does.
        values = {name: getattr(others, name) for name in SourceTable.model_fields}
        now = now.changed(**values)
        yield "the recipe's [source]", now
    paths = {name: now.file(name) for name in now.named_files}
    for number, (title, source) in enumerate(_patch_changes(now, bad)):
        target_folder = folder / str(number)
        files.remove(target_folder)
        for name in source.named_files:
            # A patch that is in both builds changes its content in a step of its own.
            if title == _content_of(name) or name not in paths:
                paths[name] = bad.file(name)
            target = target_folder / PATCHES / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(paths[name], target)
        now = source.located(target_folder)
        yield title, now


def _patch_changes(now: SourceTable, bad: SourceTable) -> Iterator[tuple[str, SourceTable]]:
    """Yield each changed, removed and added patch, in this order."""
    for name in dict.fromkeys(now.named_files):
        if (
            name in {*bad.named_files}
            and now.file(name).read_bytes() != bad.file(name).read_bytes()
        ):
            yield _content_of(name), now
    for name in now.patches:
        if name not in bad.patches:
            others = tuple(patch for patch in now.patches if patch != name)
            now = now.changed(patches=others)
            yield f"without patches/{name}", now
    for name in bad.patches:
        if name not in now.patches:
            # In the order of the failing build: a patch may need those before it.
            either = {*now.patches, name}
            ordered = tuple(patch for patch in bad.patches if patch in either)
            now = now.changed(patches=ordered)
            yield f"patches/{name}", now
    if now.patches != bad.patches:
        now = now.changed(patches=bad.patches)
        yield "the order of the patches", now
    if now.assets != bad.assets:
        yield ("the recipe's [source.assets]", now.changed(assets=bad.assets))


def _content_of(name: str) -> str:
    return f"patches/{name}, whose content changed"
