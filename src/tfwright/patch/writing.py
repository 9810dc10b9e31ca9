"""`invoke patch`: a patch from the edits in a tree, in the form that the recipes' patches have.

The edits are made in the recipe's own tree (``build_out/RECIPE/tree``), or, to redo a patch that no
longer fits, in a tree of their own where every patch before it is applied.
"""

import re
import textwrap
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import BaseModel

from tfwright.configure import program
from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import Recipe
from tfwright.errors import RecipeError, invoke
from tfwright.pipeline import edits, external
from tfwright.pipeline.job import RecipeJob
from tfwright.printable import shell_word
from tfwright.rules import dropping, patched_tree
from tfwright.tools import files, json_text, toml_editing
from tfwright.tools.git import merging, patching
from tfwright.tools.git.merging import Merge
from tfwright.tools.git.patching import PatchHeader
from tfwright.tools.git.work_tree import WorkTree

CONTEXT = 1
"""Lines of context around a change: the smallest that git still applies in one place only."""
WIDTH = 100
"""Characters of a line of a header."""
_NUMBER = re.compile(r"(\d{4})-")


@dataclass(frozen=True)
class WrittenPatch:
    """A patch that was written, and where the recipe names it."""

    path: Path
    files: tuple[str, ...]
    added: bool
    """Whether the recipe's list got a new entry."""
    unfit: tuple[str, ...] = ()
    """Later patches of the series that do not fit after this one, by their names."""
    shared: tuple[str, ...] = ()
    """The other recipes that name the same file."""
    left_out: tuple[str, ...] = ()
    """New files that the tree's own .gitignore names."""


def write_new(
    job: RecipeJob, path: Path, name: str, header: PatchHeader, also: Collection[str] = ()
) -> WrittenPatch:
    """Write a patch from the edits in the recipe's tree, and enter it into the recipe.

    `path` is the recipe's file, `name` the words of the patch's file name. New files that the
    tree's .gitignore names are left out, except those in `also`. Raises RecipeError if nothing was
    edited.
    """
    tree = tree_of(job)
    # Without accents a letter stays: u of ü.
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    if not words:
        raise RecipeError(
            f"{name!r} names no patch",
            remedy=f"Say in a few words why, such as '{invoke('patch no-numa')}'.",
        )
    source = job.recipe.source
    # Recipes of one release share patches, and so a folder; the branches of other repositories have
    # names of TensorFlow's.
    own = source.own_interface and PurePosixPath(source.url).stem
    folder = own or source.branch.replace("/", "-")
    if source.patches:
        folder = str(Path(source.patches[0]).parent)
    # The patch of another recipe must not be overwritten.
    others = (patches_of(path) / folder).glob("*.patch")
    taken = filter(None, map(_number_of, (*source.patches, *map(str, others))))
    inner = f"{folder}/{max(taken, default=0) + 1:04}-{words}.patch"
    target = patches_of(path) / inner
    but = edits.configure_output(job)
    changed = _write_difference(tree, target, as_text(header), but, also)
    # The patch is written first: a recipe must never name a file that does not exist.
    toml_editing.put(path, ("source", "patches"), [*source.patches, inner])
    return WrittenPatch(target, changed, added=True, left_out=tree.ignored_files({*but, *also}))


def tree_of(job: RecipeJob) -> WorkTree:
    """Return the recipe's tree; one that no build has made yet is made without any archive.

    That an archive is gone, which stops a build before, may be what the patch is for.
    """
    tree, source = WorkTree(job.places.tree), job.recipe.source
    if not tree.exists():
        repository = external.fetch_commit(job, source)
        tree.check_out(patched_tree.make_tree(tree.place, source, repository, source.commit))
    return tree


def make_refresh_tree(job: RecipeJob, which: str) -> Path:
    """Make a tree in which a patch can be redone, and return its directory.

    The patches before it are applied and committed to the index; it is merged into the files, as
    `Merge` does. Raises RecipeError if they have all of it already.
    """
    source = job.recipe.source
    patch = _find_patch(job.recipe, which)
    path = source.file(patch)
    # Before minutes of checking out: one that cannot be read cannot be merged.
    patching.read(path)
    position = source.patches.index(patch)
    before = source.changed(patches=source.patches[:position])
    tree = RefreshTree(job)
    begun = tree.read_state()
    if begun and tree.exists() and tree.edits_digest() != begun.content:
        # They would be lost.
        shown = shell_word(begun.patch)
        own = f"invoke patch --recipe {job.recipe.argument} --refresh {shown} --write"
        raise RecipeError(
            f"{tree.place} holds edits of {begun.patch} that are not written yet",
            remedy=f"Write them: '{own}'. Or delete that directory, and them with it.",
        )
    # Without it the tree counts as none, should this be interrupted.
    files.remove(tree.state)
    # Earlier patches go into the index, so that the difference holds this patch alone.
    repository = external.fetch_commit(job, source)
    try:
        content = patched_tree.make_tree(tree.place, before, repository, source.commit)
    except RecipeError as fault:
        for each in before.patches:
            if str(source.file(each)) in fault.what:
                shown = shell_word(each)
                first = f"invoke patch --recipe {job.recipe.argument} --refresh {shown}"
                raise RecipeError(
                    f"{patch} comes after one that does not fit: {fault.what}",
                    remedy=f"Redo that one first: {first}",
                    evidence=fault.evidence,
                ) from fault
        raise
    tree.check_out(content)
    # What the patch changes comes into the files, as far as it fits.
    base = merging.base_of(path)
    original = external.fetch_commit(job, source.changed(commit=base)) if base else None
    Merge(tree.place, original, base, job.listener.note).apply_patch(path)
    if not (tree.changed_files() or tree.foreign_files()):
        tree.discard()
        raise RecipeError(
            f"The tree has all of {patch} already",
            remedy=f"Remove it from source.patches of {job.recipe.argument}; delete the file if no "
            "other recipe names it.",
        )
    begun = BegunPatch(patch=patch, content=tree.edits_digest())
    files.write(tree.state, begun.model_dump_json())
    return tree.place


class BegunPatch(BaseModel):
    """What the tree of a patch that is being redone was when a person got it."""

    patch: str
    content: str


class RefreshTree(WorkTree):
    """The tree in which a patch is redone; no stage reads it."""

    def __init__(self, job: RecipeJob) -> None:
        """Name it; `state` is the file that says what it is for."""
        super().__init__(job.places.own / "patch")
        self.state = job.places.own / "patch.json"

    def read_state(self) -> BegunPatch | None:
        """Return what the tree was when a person got it; None where that is not known."""
        return json_text.load_or_none(self.state, BegunPatch)

    def edits_digest(self) -> str:
        """Return a checksum of all files that differ from the index, new ones included."""
        names = sorted({*self.changed_files(), *self.foreign_files()})
        places = {name: self.place / name for name in names}
        found = {name: files.sha256(place) for name, place in places.items() if place.is_file()}
        return json_text.digest([names, found])


def unresolved_files(place: Path) -> list[str]:
    """Return what a person still has to do in a tree: conflicts, and parts that did not fit."""
    tree = WorkTree(place)
    touched = {*tree.changed_files(), *tree.foreign_files()}
    return sorted(
        name for name in touched if name.endswith(".rej") or merging.has_conflicts(place / name)
    )


def refresh(job: RecipeJob, which: str) -> WrittenPatch:
    """Write a patch of the series again from the tree that `prepare` made; its header stays."""
    source = job.recipe.source
    patch = _find_patch(job.recipe, which)
    target = source.file(patch)
    tree = RefreshTree(job)
    begun = tree.read_state()
    if not begun or not tree.exists():
        raise RecipeError(
            f"{target.name} has no tree to be redone in",
            remedy=f"Make it: invoke patch --recipe {job.recipe.argument} --refresh {which}",
        )
    if begun.patch != patch:
        shown = shell_word(begun.patch)
        raise RecipeError(
            f"The tree in {tree.place} is for {begun.patch}, not for {patch}",
            remedy=f"Write that one: 'invoke patch --recipe {job.recipe.argument} "
            f"--refresh {shown} --write'. Without --write, --refresh {which} makes the "
            "tree of this one.",
        )
    # With a part left out, the new patch would silently do less than the old one.
    if left := unresolved_files(tree.place):
        raise RecipeError(
            f"Parts of {target.name} that did not fit are still waiting in {len(left)} of the "
            f"files in {tree.place}",
            remedy="Make the change by hand; delete git's marks in the file, and each FILE.rej. "
            "Then run this again.",
            lines=left,
        )
    # Each field is there, with a text.
    patching.read_header(target)
    named = {file.path for file in patching.read(target)}
    left_out = tree.ignored_files(named)
    changed = _write_difference(tree, target, patching.written_header(target), also=named)
    later = source.patches[source.patches.index(patch) + 1 :]
    unfit = tuple(name for name in later if not _apply_if_fits(tree, source.file(name)))
    tree.discard()
    files.remove(tree.state)
    others = (each for each in recipes.readable_recipes() if each.name != job.recipe.name)
    shared = tuple(one.name for one in others if target in map(one.source.file, one.source.patches))
    return WrittenPatch(target, changed, added=False, unfit=unfit, shared=shared, left_out=left_out)


def _apply_if_fits(tree: WorkTree, patch: Path) -> bool:
    """Put a patch into the index of a tree, and return whether that was possible."""
    before = tree.content()
    try:
        patching.apply(tree, patch, before=before)
    except RecipeError:
        tree.put(before)
        return False
    return True


def _write_difference(
    tree: WorkTree,
    target: Path,
    head: str,
    but: Collection[str] = program.EDITED_FILES,
    also: Collection[str] = (),
) -> tuple[str, ...]:
    """Write the difference between a tree and its index as a patch; return the files it changes.

    `head` is the text of its header. The files `but` are left out, and the new ones in `also` are
    not, although the tree's .gitignore may name them.
    """
    before = target.read_bytes() if target.exists() else None
    diff = tree.difference(CONTEXT, but, also)
    if not diff.strip():
        remedy = "Edit the files there, then run this again."
        if before:
            remedy += f" If the tree has all of {target.name}, remove it from source.patches."
        raise RecipeError(f"Nothing differs in {tree.place}", remedy=remedy)
    _check_text(tree.place, diff)
    if condition := dropping.misspelt_condition(dict(patching.header_fields(head))["Drop when"]):
        place = f"'Drop when' of {target} as" if before else "--drop-when"
        raise RecipeError(
            f"'{condition}' cannot be read as a condition",
            remedy=f"Write {place} 'release >= 1.9', 'upstream COMMIT', or a sentence; "
            "docs/new-recipe.md.",
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    # A changed file may be in another encoding than UTF-8.
    files.write(target, f"{head}\n{diff}".encode("utf-8", "surrogateescape"))
    try:
        # Read back as a build reads it: a patch that it refuses shows here already.
        changed = tuple(file.path for file in patching.read(target))
    except RecipeError as fault:
        # The edits are still in the tree; a file that no recipe can name would stay for ever.
        if before is None:
            files.remove(target)
        else:
            files.write(target, before)
        what = fault.what.removeprefix(f"{fault.evidence.where}: ")
        raise RecipeError(
            f"The edits make no patch: {what}", remedy=fault.template, where=tree.place
        ) from fault
    # The next patch starts from here.
    tree.run("add", "--all", "--force", "--", *changed)
    return changed


def _check_text(tree: Path, diff: str) -> None:
    """Raise RecipeError for changed files that a patch of text cannot hold."""
    found = re.findall(r"(?m)^Binary files (.*) and (.*) differ$", diff)
    changed = [before.removeprefix("a/") for before, _ in found if before != "/dev/null"]
    new = [after.removeprefix("b/") for before, after in found if before == "/dev/null"]
    remedy = ""
    if changed:
        words = " ".join(map(shell_word, [str(tree), "checkout", "--", *changed]))
        remedy = f"Take the change back: 'git -C {words}'. "
    if new:
        remedy += (
            "Move a new one out of the tree; if the build needs it, enter it into "
            "[source.assets] of the recipe."
        )
    if names := [*changed, *new]:
        raise RecipeError(
            f"{names[0]} in {tree} is not text, and a patch holds text only",
            remedy=remedy.strip(),
            # A single one is in the message already.
            lines=names if len(names) > 1 else [],
        )


def as_text(header: PatchHeader) -> str:
    """Return a header as patches have it: three fields, further lines indented by one blank."""
    fields = {"Why": header.why, "Upstream": header.upstream, "Drop when": header.drop_when}
    filled = [
        textwrap.fill(
            f"{name}: {' '.join(text.split())}",
            width=WIDTH,
            subsequent_indent=" ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for name, text in fields.items()
    ]
    return "\n".join([*filled, ""])


def _find_patch(recipe: Recipe, which: str) -> str:
    """Return the patch of a recipe with a number, or with a name. Raises RecipeError."""
    patches = recipe.source.patches
    found = [
        patch for patch in patches if which == patch or str(_number_of(patch)) == which.lstrip("0")
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise RecipeError(
            f"{len(found)} patches of {recipe.name} have the number {which}",
            remedy=f"Name one of them: --refresh {', or --refresh '.join(found)}.",
        )
    raise RecipeError(
        f"{recipe.name} has no patch {which}",
        remedy=f"Its patches: {', '.join(patches) or 'none'}.",
    )


def _number_of(patch: str) -> int | None:
    """Return the number in a patch's file name; None if it has none."""
    found = _NUMBER.match(Path(patch).name)
    return int(found[1]) if found else None


def patches_of(path: Path) -> Path:
    """Return patches/ of the checkout for its own recipes, else the one next to the recipe."""
    if path.resolve().parent == recipes.RECIPES.resolve():
        return recipes.PATCHES
    return path.resolve().parent / "patches"
