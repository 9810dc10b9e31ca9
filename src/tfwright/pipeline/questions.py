"""What ./configure asks on this host, and what the recipe answers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tfwright.documents.recipe import Recipe
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import HostFacts, Tree

if TYPE_CHECKING:
    from tfwright.configure.interview import Interview
    from tfwright.configure.traits import Scripts


def on_host(
    job: Job, recipe: Recipe, host: HostFacts, python: Mapping[str, str], scripts: "Scripts"
) -> "Interview":
    """Return the questions of a tree's ./configure, with the recipe's answers.

    `python` answers those about Python. `scripts` are the files of the tree that decide what it
    asks, where they can: a commit between two releases asks as it does.
    """
    from tfwright.configure import expected
    from tfwright.configure.answers import complete
    from tfwright.configure.interview import Interview

    answers = complete(recipe, job.host_file, python, host.cuda, host.cudnn)
    dialect = expected.dialect(recipe, host.system, scripts)
    return Interview(dialect, answers, recipe.configure.by, host.python)


def scripts_of_last(recipe: Recipe, tree: Tree | None) -> "Scripts":
    """Return what shows how ./configure writes, of the tree that is there if it is the recipe's."""
    from tfwright.configure import traits

    # The tree on the disk may be of the commit that the recipe pinned before.
    same = tree is not None and tree.commit == recipe.source.commit
    return traits.scripts_in(tree.path) if tree and same else {}
