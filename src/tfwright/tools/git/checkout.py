"""A tree that is brought from one content to another: only the files that differ are written.

TensorFlow has ten to thirty thousand files. Writing all of them for a change of one patch takes a
minute on a busy disk, and gives Bazel new times of change for every file.
"""

import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from tfwright.errors import TfwrightError, ToolError
from tfwright.tools import git
from tfwright.tools.git import soundness

SAME = ("HEAD", "shallow", "info/attributes", "info/sparse-checkout", "objects/info/alternates")
"""Files of a tree's repository that say which commit, of which mirror, without which paths, how."""


def put(tree: Path, prepared: Path, content: str, exclude: Collection[str] = ()) -> None:
    """Bring `tree` to a content that the repository of the scratch tree `prepared` holds.

    The paths in `exclude` are left out of both. Whatever else is in the tree is removed. Where it
    is not of the same commit, or not sound, it is made from nothing. `prepared` stays as it is.
    """
    if git.is_tree(tree) and _is_alike(tree, prepared):
        # A git that was killed left a lock or a damaged index, or an object of the tree's own is
        # damaged: start from nothing.
        with suppress(TfwrightError):
            _insist_on_watched(tree, exclude)
            if _updated(tree, prepared, content):
                return
    git.copy(prepared, tree)
    git.check_out(tree, content)


def _is_alike(tree: Path, prepared: Path) -> bool:
    """Tell whether both trees have the same commit, mirror and excluded paths."""
    first, second = git.repository_of(tree), git.repository_of(prepared)
    return all(_content(first / name) == _content(second / name) for name in SAME)


def _insist_on_watched(tree: Path, exclude: Collection[str]) -> None:
    """Raise ToolError if git's index says to skip a file: git would not write it either."""
    if hidden := git.unwatched(tree, exclude):
        message = f"{hidden[0]} is hidden from git"
        raise ToolError(message, remedy="The tree is made from nothing.")


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _updated(tree: Path, prepared: Path, content: str) -> bool:
    """Write the files that differ; return whether the tree is exactly the content then."""
    _adopt(git.repository_of(tree), git.repository_of(prepared))
    # What was edited, deleted or added since the last checkout goes first: git would leave it alone
    # in every file that is the same in both contents.
    touched = git.changed(tree)
    before = git.content(tree)
    git.restore(tree)
    git.run(git.checking_out(tree, content))
    soundness.insist(git.repository_of(tree), content)
    written = {*touched, *git.changes(tree, before, content)}
    soundness.insist_on_files(tree, content, written)
    return not git.changed(tree)


def _adopt(repository: Path, prepared: Path) -> None:
    """Copy the few objects that patches made into the repository of a tree."""
    for source in (prepared / "objects").glob("??/*"):
        target = repository / "objects" / source.relative_to(prepared / "objects")
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(source, target)
