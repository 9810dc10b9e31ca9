"""Which TensorFlow a tree says it is, held against the release that the recipe names."""

import re
from collections.abc import Mapping
from pathlib import Path

from tfwright.documents.recipe import SourceTable
from tfwright.documents.release import ExactRelease, Release
from tfwright.errors import Evidence, RecipeError
from tfwright.tools.git.repository import GitRepository

_NUMBERS = r"[0-9]{1,9}\.[0-9]{1,9}(?![0-9])"
"""As `ExactRelease.parse` reads them: the tree may say anything."""
PLACES = {
    "tensorflow/tf_version.bzl": re.compile(rf"^TF_VERSION = \"({_NUMBERS}[^\"\n]*)", re.MULTILINE),
    "tensorflow/tools/pip_package/setup.py": re.compile(
        rf"^_VERSION = ['\"]({_NUMBERS}[^'\"\n]*)", re.MULTILINE
    ),
}
"""Where a tree states its version: 2.18 and later, and every release before."""


def insist(repository: Path, commit: str, table: SourceTable) -> None:
    """Raise RecipeError if the commit is of another release than the recipe says.

    Rules, prompts and patches are chosen by the release. With a wrong one the first thing that
    fails is a question of ./configure that this release does not ask.
    """
    # Other projects that Bazel builds have neither file.
    if table.interface != "tensorflow":
        return
    for path, pattern in PLACES.items():
        found = pattern.search(GitRepository(repository).text(f"{commit}:{path}"))
        if found and not _agree(ExactRelease.parse(found[1]), table):
            says = table.version or table.release
            raise RecipeError(
                f"The pinned commit is TensorFlow {found[1]}, the recipe says {says}",
                remedy=(
                    "Pin a commit of the branch that source.branch names, or correct source.branch"
                    ", source.release and source.version."
                ),
                evidence=Evidence(where=f"{commit[:12]}:{path}"),
            )


def stated(texts: Mapping[str, str]) -> Release | None:
    """Return the release that a tree says it is; `texts` are its files of `PLACES` by path."""
    for path, pattern in PLACES.items():
        found = pattern.search(texts.get(path, ""))
        if found:
            return Release.parse(found[1])
    return None


def _agree(tree: ExactRelease, table: SourceTable) -> bool:
    if tree.line != table.release:
        return False
    # Only a stated version is compared in full: a branch's commits come after its first release.
    # What a fork adds behind the plus sign is not in the files of all of them.
    stated = table.version
    candidates = {tree.candidate, stated.candidate if stated else tree.candidate}
    return stated is None or (tree.numbers == stated.numbers and len(candidates) == 1)
