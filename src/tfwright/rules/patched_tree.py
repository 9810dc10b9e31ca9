"""The tree of a recipe in git's index: the pinned commit, assets and patches, not checked out."""

from collections.abc import Callable, Mapping
from pathlib import Path

from tfwright.documents.recipe import SourceTable
from tfwright.errors import Evidence, RecipeError
from tfwright.tools import files, git


def make(
    tree: Path,
    table: SourceTable,
    mirror: Path,
    commit: str,
    note: Callable[[str], None] = lambda _: None,
) -> str:
    """Put the commit, the assets and the patches into the index of a tree that has no file yet.

    Returns git's id of the content; `note` hears of each patch that applies elsewhere than it says.
    Raises RecipeError for an asset that does not fit, or with all patches that do not.
    """
    from tfwright.rules import dropping
    from tfwright.rules.dropping import DropFacts
    from tfwright.tools.git import patching

    git.prepare(tree, mirror, commit, table.exclude)
    # Assets come first: a patch may change one, as it may any file of the tree.
    for path, asset in table.assets.items():
        _refuse_left_out(table, f"The asset {asset}", path)
        git.add(tree, path, table.file(asset))
    # Before any patch is applied, so that a refusal does not leave half of them in the index.
    for patch in table.patches:
        for file in patching.read(table.file(patch)):
            _refuse_left_out(table, f"The patch {patch}", file.path)

    def outlived(drop_when: str) -> str:
        verdict = dropping.judge(drop_when, DropFacts(table))
        return verdict.condition if verdict.answer == "due" else ""

    patches = [table.file(patch) for patch in table.patches]
    for moved in patching.apply_all(tree, patches, outlived):
        note(moved)
    return git.content(tree)


def texts(tree: Path, table: SourceTable, content: str) -> dict[str, str]:
    """Return the files of a tree's content that can hold repository rules."""
    from tfwright.rules import repositories

    return git.texts(
        git.repository_of(tree),
        content,
        lambda path: repositories.relevant(path) and not git.left_out(path, table.exclude),
    )


def digests(table: SourceTable) -> Mapping[str, str]:
    """Return the digest of each patch and asset, by its path under patches/."""
    named = (*table.patches, *table.assets.values())
    return {file: files.sha256(table.file(file)) for file in named}


def _refuse_left_out(table: SourceTable, what: str, path: str) -> None:
    """Refuse to change what is never checked out."""
    if git.left_out(path, table.exclude):
        raise RecipeError(
            f"{what} changes {path}, which source.exclude leaves out",
            remedy=f"Take {path} out of source.exclude, or drop the patch or asset.",
            evidence=Evidence(where=path),
        )
