"""Which TensorFlow a tree says it is, held against the release that the recipe names."""

import re
from pathlib import Path

from tfwright.documents.recipe import SourceTable
from tfwright.documents.release import Release
from tfwright.errors import Evidence, RecipeError
from tfwright.tools import git

PLACES = {
    "tensorflow/tf_version.bzl": re.compile(
        r"^TF_VERSION = \"(\d+\.\d+)", re.MULTILINE
    ),
    "tensorflow/tools/pip_package/setup.py": re.compile(
        r"^_VERSION = ['\"](\d+\.\d+)", re.MULTILINE
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
        found = pattern.search(git.text(repository, f"{commit}:{path}"))
        if found and Release.parse(found[1]) != table.release:
            raise RecipeError(
                f"The pinned commit is TensorFlow {found[1]}, the recipe says {table.release}",
                remedy=(
                    "Pin a commit of the branch that source.branch names, or correct source.branch "
                    "and source.release."
                ),
                evidence=Evidence(where=f"{commit[:12]}:{path}"),
            )
