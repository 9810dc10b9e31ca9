"""Checks out the pinned commit, puts in the assets, the patches in order, and the recipe's substitutes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tfwright.documents.recipe import PATCHES, FetchTable, SourceTable
from tfwright.errors import Evidence, RecipeError
from tfwright.pipeline import stamps
from tfwright.pipeline.results import Inputs, Tree
from tfwright.pipeline.stage import Job, Step, Writes
from tfwright.rules import repositories
from tfwright.tools import files, git
from tfwright.tools.git import patching
from tfwright.vault import substitutes


def run(job: Job, table: SourceTable, fetch: FetchTable, inputs: Inputs) -> Tree:
    """Make the tree from nothing, so that neither an interrupted run nor anything else is left in it."""
    tree = job.places.tree
    content = patched(tree, table, inputs.mirror, inputs.commit)
    if fetch.substitutes:
        for path, text in substitutes.rewritten(
            texts(tree, table, content), fetch.substitutes
        ).items():
            git.replace(tree, path, text)
        content = git.content(tree)
    git.check_out(tree, content)
    return Tree(
        path=tree, commit=inputs.commit, epoch=inputs.epoch, release=table.release, content=content
    )


def patched(tree: Path, table: SourceTable, mirror: Path, commit: str) -> str:
    """Put the commit, the assets and the patches into the index of a tree that has no file yet; return the id of the content."""
    git.prepare(tree, mirror, commit, table.exclude)
    for path, asset in table.assets.items():
        _refuse_left_out(table, f"The asset {asset}", path)
        git.add(tree, path, PATCHES / asset)
    for patch in table.patches:
        for file in patching.read(PATCHES / patch):
            _refuse_left_out(table, f"The patch {patch}", file.path)
        patching.apply(tree, PATCHES / patch)
    return git.content(tree)


def texts(tree: Path, table: SourceTable, content: str) -> dict[str, str]:
    """Return the files of a tree's content that can hold repository rules."""
    return git.texts(
        git.repository_of(tree),
        content,
        lambda path: repositories.relevant(path) and not git.left_out(path, table.exclude),
    )


def inputs(job: Job) -> Mapping[str, str]:
    """Return the digest of each patch and asset."""
    return {f"patches/{file}": files.sha256(PATCHES / file) for file in _files(job.recipe.source)}


def steps(job: Job) -> Sequence[Step]:
    """Return the git commands, and the assets among the files that they write."""
    table, tree = job.recipe.source, job.places.tree
    return (
        *git.preparation(tree, table.commit),
        *(Writes(tree / path) for path in table.assets),
        *(patching.command(tree, PATCHES / patch) for patch in table.patches),
        git.checking_out(tree, "(the patched tree)"),
    )


def epoch(job: Job) -> int:
    """Return the commit's time, in seconds, if a tree was made before; 0 if not."""
    tree = stamps.last(job, "source", Tree)
    return tree.epoch if tree else 0


def _files(table: SourceTable) -> list[str]:
    return [*table.patches, *table.assets.values()]


def _refuse_left_out(table: SourceTable, what: str, path: str) -> None:
    """Refuse to change what is never checked out."""
    if git.left_out(path, table.exclude):
        raise RecipeError(
            f"{what} changes {path}, which source.exclude leaves out",
            remedy="Drop one of the two.",
            evidence=Evidence(where=path),
        )
