"""A copy of the demo's recipe, whose tree patches are written from."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.patch import writing
from tfwright.patch.writing import WrittenPatch
from tfwright.pipeline.job import RecipeJob
from tfwright.tools.git.patching import PatchHeader
from tfwright.tools.git.work_tree import WorkTree

HEADER = PatchHeader("It fails without it.", "none; a test", "the release is 2.0 or later.")
EDITED = "tensorflow/core/kernels/matrix.cc"
Make = Callable[..., WrittenPatch]
"""What the fixture `make` is: writes a patch of some name from the edits in the tree."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a copy of the demo's recipe, outside the checkout."""
    return Path(shutil.copy(recipes.find("demo"), tmp_path / "mine.toml"))


def job_of(path: Path) -> RecipeJob:
    """Return a job for the recipe as it is now."""
    host_file = HostFile(build_out=path.with_name("build_out"))
    return RecipeJob(recipe=recipes.read(str(path)), host_file=host_file, until="source")


@pytest.fixture
def job(path: Path) -> RecipeJob:
    """Return a job whose tree is made."""
    made = job_of(path)
    writing.tree_of(made)
    return made


@pytest.fixture
def tree(job: RecipeJob) -> Path:
    """Return that tree."""
    return job.places.tree


def applied(path: Path) -> str:
    """Return a file of the tree as the recipe's patches leave it by now."""
    job = job_of(path)
    WorkTree(job.places.tree).discard()
    return (writing.tree_of(job).place / EDITED).read_text("utf-8")


def edit(tree: Path, comment: str = "Edited") -> None:
    """Put a comment at the top of a file of a tree."""
    file = tree / EDITED
    file.write_text(f"// {comment}.\n{file.read_text('utf-8')}", "utf-8")


@pytest.fixture
def make(path: Path) -> Make:
    def made(name: str = "edited", header: PatchHeader = HEADER, *also: str) -> WrittenPatch:
        return writing.write_new(job_of(path), path, name, header, also)

    return made
