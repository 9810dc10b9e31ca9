"""The patches of a ported recipe: each one tried by itself on the new commit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tfwright.documents.recipe import Recipe
from tfwright.errors import RecipeError
from tfwright.pipeline.job import Job
from tfwright.rules import dropping
from tfwright.rules.dropping import DropFacts
from tfwright.tools import files
from tfwright.tools.git import merging, patching
from tfwright.tools.git.repository import is_excluded
from tfwright.tools.git.work_tree import WorkTree

Fate = Literal["kept", "dropped", "redo", "done", "compare", "lacking"]
"""``kept``: it applies. ``dropped``: its header says that this release does not need it.
``done``: upstream seems to have done the same. ``redo``: it has to be made again.
``compare``: one of its name is there already. ``lacking``: it changes a file that the recipe
leaves out."""


@dataclass(frozen=True)
class TriedPatch:
    """What becomes of one patch of the old recipe."""

    name: str
    fate: Fate
    says: str
    now: str = ""
    """Its name in the new recipe; empty for one that is dropped."""


def try_patches(
    job: Job, recipe: Recipe, repository: Path, facts: DropFacts | None
) -> Iterator[TriedPatch]:
    """Try every patch of the old recipe on the commit of the new one.

    Without `facts` none is dropped for what its header says.
    """
    source = recipe.source
    tree = WorkTree(job.places.own / "porting")
    for name in source.patches:
        condition = patching.read_header(source.file(name)).drop_when
        verdict = dropping.judge(condition, facts) if facts else None
        if verdict and verdict.answer == "due":
            yield TriedPatch(name, "dropped", f"its header says: drop when {verdict.condition}")
            continue
        # A clean tree each time: a patch that fails must not make the next one fail.
        tree.prepare(repository, source.commit, source.exclude)
        yield _try_patch(tree, source.file(name), name, source.exclude)
    # The index of the tree is kept apart from it, in a repository of its own.
    tree.discard()


def _try_patch(tree: WorkTree, patch: Path, name: str, exclude: Sequence[str]) -> TriedPatch:
    try:
        for file in patching.read(patch):
            if is_excluded(file.path, exclude):
                left = f"changes {file.path}, which source.exclude leaves out"
                return TriedPatch(name, "lacking", f"{left}: name a mirror that has it, or drop it")
        notes = patching.apply(tree, patch)
    except RecipeError as fault:
        # Upstream may have the change now; whether it does the same, a person has to see.
        done = fault.remedy.startswith(("Remove the patch", "Compare the lines"))
        return TriedPatch(name, "done" if done else "redo", fault.what.removeprefix(f"{patch} "))
    # The report names the patch already.
    says = [note.removeprefix(f"{patch.name}: ") for note in notes]
    return TriedPatch(name, "kept", "; ".join(says) or "applies as it is")


def patch_path(folder: Path, name: str) -> Path:
    """Return where a patch goes in the folder of another branch: ``r1.12/0005-….patch``.

    One that is there already has the same words; a number that another one has is not used again.
    """
    number, _, words = Path(name).name.partition("-")
    there = dict(file.name.partition("-")[::2] for file in folder.glob("*-*.patch"))
    same = [taken for taken, others in there.items() if others == words]
    if not same and number in there:
        same = [f"{max(int(taken) for taken in there if taken.isdigit()) + 1:04}"]
    return folder / f"{same[0] if same else number}-{words}"


def copy_for_redo(patch: Path, target: Path, base: str) -> None:
    """Copy a patch that has to be redone, with the commit that it was made for, if that is known.

    The recipe that it comes from keeps its own: `invoke patch --refresh` writes into the copy.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    text = patch.read_text("utf-8", "surrogateescape")
    with_base = f"{merging.base_line(base)}\n{text}" if base else text
    files.write(target, with_base.encode("utf-8", "surrogateescape"))
