"""The tree of a recipe in git's index: the pinned commit, assets and patches, not checked out.

What each patch made is kept, so that after a change only that patch and the later ones are applied.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from tfwright.documents.recipe import SourceTable
from tfwright.documents.toml import Table
from tfwright.errors import RecipeError
from tfwright.tools import files, json_text
from tfwright.tools.git.repository import is_excluded
from tfwright.tools.git.work_tree import WorkTree

STEPS = "tfwright-steps.json"
"""The file, in the tree's repository, that says which content each step made."""
REQUIREMENTS = re.compile(r"requirements_lock_(\d+)_(\d+)\.txt")
"""The files in which a tree pins the packages that its build installs, one for each Python."""
WORKSPACE, MODULES, LOCK, BAZELRC = ("WORKSPACE", "MODULE.bazel", "MODULE.bazel.lock", ".bazelrc")
"""The files with which Bazel begins; the last one says which of the first two it reads."""


def is_relevant(path: str) -> bool:
    """Say whether Bazel begins with a file of a tree, or can be led to it."""
    rules = path.endswith((".bzl", ".MODULE.bazel")) and path.isprintable()
    begins = path in {WORKSPACE, MODULES, LOCK, BAZELRC}
    return begins or rules or bool(REQUIREMENTS.fullmatch(path))


class TreeStep(Table):
    """One step from the pinned commit to the tree that is built, and what came of it."""

    key: str
    """Digest of everything that decides the content: what the step does, after which others."""
    content: str
    """git's id of the tree after it."""
    notes: tuple[str, ...] = ()


class KeptSteps(Table):
    """What stays of a run, next to the objects that it made."""

    steps: tuple[TreeStep, ...]
    objects: tuple[str, ...]
    """Ids of the objects that the steps added to those of the commit."""


class PatchedTree:
    """A scratch tree without files, brought from the commit to a content step by step.

    Contents are objects of git in the tree's own repository, by their digests; no step that was
    taken before is taken again.
    """

    def __init__(self, tree: Path, table: SourceTable, mirror: Path, commit: str) -> None:
        """Use what an earlier run left at `tree`, as far as it is sound."""
        self._tree, self._table = WorkTree(tree), table
        self._mirror, self._commit = mirror, commit
        self._known = self._usable_steps()
        self._taken: list[TreeStep] = []
        self._index = ""
        """What the index is known to hold; empty where that is not known."""
        self._new = False
        """Whether a step was taken that is not written down yet."""

    def _usable_steps(self) -> Sequence[TreeStep]:
        """Return the steps that an earlier run took; none where anything is not as it was left."""
        try:
            kept = KeptSteps.model_validate_json(files.content(self._tree.path / STEPS))
        except (OSError, ValidationError):
            return ()
        # The commit's own objects are in the mirror, which is verified when the commit comes in.
        sound = {name for name, is_sound in self._tree.loose_objects() if is_sound}
        usable = (
            self._tree.place.is_dir()
            and sound.issuperset(kept.objects)
            # With attributes of somebody else git would read other bytes.
            and self._tree.is_plain()
            # Its settings, and the way to the mirror: git would fail in the middle of a new step.
            and self._tree.kind(self._commit) == "commit"
        )
        return kept.steps if usable else ()

    def apply_all(self, note: Callable[[str], None] = lambda _: None) -> str:
        """Return git's id of the content after all patches.

        `note` hears of each patch that applies elsewhere than it says. Raises RecipeError for an
        asset that does not fit, or with all patches that do not.
        """
        self._check_included()
        assets = {
            path: files.sha256(self._table.file(asset))
            for path, asset in self._table.assets.items()
        }
        exclude = list(self._table.exclude)
        try:
            first = json_text.digest([str(self._mirror), self._commit, exclude, assets])
            self._run_step(first, self._check_out)
            self._apply_patches()
        finally:
            self._save_steps()
        for step in self._taken:
            for moved in step.notes:
                note(moved)
        return self._taken[-1].content

    def replace_files(self, key: str, texts: Callable[[str], Mapping[str, str]]) -> str:
        """Return git's id of the content after whole files were replaced.

        `texts` is handed the content before, and returns the new files by path; `key` is a digest
        of what else decides them.
        """

        def replace(before: str) -> Sequence[str]:
            for path, text in texts(before).items():
                self._tree.replace(path, text)
            return ()

        self._run_step(key, replace)
        self._save_steps()
        return self._taken[-1].content

    def _run_step(self, key: str, work: Callable[[str], Sequence[str]]) -> None:
        """Take a step, or believe that it was taken before; `work` gets the content before it."""
        place = len(self._taken)
        before = self._commit
        if self._taken:
            before = self._taken[-1].content
            key = json_text.digest([self._taken[-1].key, key])
        if place < len(self._known) and self._known[place].key == key:
            self._taken.append(self._known[place])
            return
        # What was made after another step is of no use any more.
        self._known = []
        # The index may have been left with anything.
        if self._taken and self._index != before:
            self._tree.put(before)
        notes = work(before)
        step = TreeStep(key=key, content=self._tree.content(), notes=tuple(notes))
        # What it was made from has to be the commit's own objects, by their ids.
        changes = self._tree.changes(before, step.content)
        self._tree.verify_objects(before, {change.old for change in changes.values()})
        self._index, self._new = step.content, True
        self._taken.append(step)

    def _check_out(self, commit: str) -> Sequence[str]:
        """Start from nothing with the commit, then put the assets in."""
        self._tree.prepare(self._mirror, commit, self._table.exclude)
        # Assets come first: a patch may change one, as it may any file of the tree.
        for path, asset in self._table.assets.items():
            self._tree.add(path, self._table.file(asset))
        return ()

    def _apply_patches(self) -> None:
        """Apply every patch, also after one that does not fit, and raise for all of those."""
        from tfwright.tools.git import patching

        faults: list[RecipeError] = []
        for patch in self._table.patches:
            path = self._table.file(patch)

            def apply(before: str, path: Path = path) -> Sequence[str]:
                return patching.apply(self._tree, path, self._due_condition, before)

            try:
                self._run_step(files.sha256(path), apply)
            except RecipeError as fault:
                # Not the patch may be wrong, but the bytes of the files that it names.
                before = self._taken[-1].content
                named = self._tree.plain_files(before, files.text(path).__contains__)
                self._tree.verify_objects(before, named.values())
                faults.append(fault)
                # git leaves the index alone, or half changed, and the next patch needs it whole.
                self._index = ""
        if faults:
            raise patching.combine_errors(faults)

    def _due_condition(self, drop_when: str) -> str:
        """Return the condition of a patch's header that says that it is not needed any more."""
        from tfwright.rules import dropping
        from tfwright.rules.dropping import DropFacts

        verdict = dropping.judge(drop_when, DropFacts(self._table))
        return verdict.condition if verdict.answer == "due" else ""

    def _save_steps(self) -> None:
        """Write down which steps were taken, and the objects that their contents consist of."""
        if not self._new:
            return
        sound = sorted(name for name, is_sound in self._tree.loose_objects() if is_sound)
        kept = KeptSteps(steps=tuple(self._taken), objects=tuple(sound))
        files.write(self._tree.path / STEPS, kept.model_dump_json(indent=1))
        self._new = False

    def _check_included(self) -> None:
        """Refuse to change what is never checked out, before anything is changed."""
        from tfwright.tools.git import patching

        table = self._table
        changing = [(f"The asset {asset}", path) for path, asset in table.assets.items()]
        for patch in table.patches:
            read = patching.read(table.file(patch))
            changing += [(f"The patch {patch}", file.path) for file in read]
        for what, path in changing:
            if is_excluded(path, table.exclude):
                raise RecipeError(
                    f"{what} changes {path}, which source.exclude leaves out",
                    remedy=f"Take {path} out of source.exclude, or drop the patch or asset.",
                    where=path,
                )


def make_tree(tree: Path, table: SourceTable, mirror: Path, commit: str) -> str:
    """Make a tree from nothing, and return git's id of its content after all patches."""
    WorkTree(tree).discard()
    return PatchedTree(tree, table, mirror, commit).apply_all()


def rule_files(tree: Path, table: SourceTable, content: str) -> dict[str, str]:
    """Return git's ids of the files of a content that can hold repository rules, by path."""
    return WorkTree(tree).plain_files(content, _rule_filter(table))


def rule_texts(tree: Path, table: SourceTable, content: str) -> dict[str, str]:
    """Return the files of a tree's content that can hold repository rules, by path."""
    return WorkTree(tree).texts(content, _rule_filter(table))


def text(tree: Path, content: str, path: str) -> str:
    """Return a file of a content; empty if it has none."""
    return "".join(WorkTree(tree).texts_at(content, [path]).values())


def _rule_filter(table: SourceTable) -> Callable[[str], bool]:
    return lambda path: is_relevant(path) and not is_excluded(path, table.exclude)


def file_digests(table: SourceTable) -> Mapping[str, str]:
    """Return the digest of each patch and asset, by its path under patches/."""
    return {file: files.sha256(table.file(file)) for file in table.named_files}


def rule_digests(table: SourceTable) -> Mapping[str, str]:
    """Return those of patches and assets that can change repository rules.

    A patch of sources alone changes nothing that a build downloads; one of a patch may, that a rule
    applies to the rules in an archive.
    """
    rules = _rule_filter(table)

    def holding(path: str) -> bool:
        return rules(path) or path.endswith((".patch", ".diff"))

    def changes_rules(file: str) -> bool:
        text = table.file(file).read_text("utf-8", errors="replace")
        changed = re.findall(r"(?m)^diff --git a/.* b/(.*)$", text)
        # What names no file is no patch; the source stage says what is wrong with it.
        return not changed or any(map(holding, changed))

    return {
        file: digest
        for file, digest in file_digests(table).items()
        if file not in table.patches or changes_rules(file)
    }


Reading = TypeVar("Reading")
MOST_READINGS = 64
"""Readings that are kept for a recipe; a build of TensorFlow 2.1 needs some ten."""


class Readings:
    """A folder of readings, each in a file that is named by what was read."""

    def __init__(self, folder: Path | None) -> None:
        """Keep readings in a folder, which need not exist yet; None keeps none."""
        self._folder = folder

    def read_once(
        self, what: object, read: "Callable[[], Reading | None]", kind: type[Reading]
    ) -> "Reading | None":
        """Return what is read from something that JSON can say, which decides it all.

        It is read only if it was not before. None, which says that there was nothing to be read, is
        not kept.
        """
        if self._folder is None:
            return read()
        model = TypeAdapter(kind)
        path = self._folder / f"{json_text.digest([self._code_digests, what])}.json"
        with suppress(OSError, UnicodeDecodeError, ValidationError):
            digest, _, text = files.text(path, "strict").partition("\n")
            # The first line is a digest of the rest: a reading that was cut could miss a download.
            if digest == json_text.digest(text):
                return model.validate_python(json_text.parse(text))
        found = read()
        if found is not None:
            text = json.dumps(model.dump_python(found))
            files.write(path, f"{json_text.digest(text)}\n{text}")
            # The oldest go first: an earlier state of the recipe is the least likely to come back.
            kept = sorted(self._folder.glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
            for old in kept[:-MOST_READINGS]:
                old.unlink()
        return found

    @cached_property
    def _code_digests(self) -> list[str]:
        """Digests of the code that reads: another version may find more in the same files."""
        return [files.sha256(path) for path in sorted(Path(__file__).parent.rglob("*.py"))]
