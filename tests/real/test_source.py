"""TensorFlow's own history, from bare repositories named in $TFWRIGHT_TENSORFLOW_MIRRORS (by colons)."""

import time
from pathlib import Path

import pytest
from tests.real.mirrors import V1_8, V1_15, mirror_of

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import FetchTable
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Inputs
from tfwright.pipeline.stages import source
from tfwright.progress import Listener
from tfwright.tools.git import mirror
from tfwright.tools.git.mirror import Origin, Pin
from tfwright.tools.git.repository import GitRepository
from tfwright.tools.git.work_tree import WorkTree

pytestmark = pytest.mark.real

URL = "https://github.com/tensorflow/tensorflow.git"


class Printer(Listener):
    """Shows notes to whoever runs the test with -s."""

    def note(self, text: str) -> None:
        print(text)  # noqa: T201 what was measured is for the reader of a real run


def absent_in(repository: Path, commit: str) -> tuple[str, ...]:
    """Return the paths of a commit whose content a repository lacks."""
    missing = GitRepository(repository).missing_ids(commit)
    return tuple(
        entry.path for entry in GitRepository(repository).entries(commit) if entry.blob in missing
    )


@pytest.mark.parametrize(("branch", "commit"), [("r1.8", V1_8), ("r1.15", V1_15)])
def test_a_release_is_fetched_for_a_fraction_of_the_whole_and_then_needs_nobody(
    branch: str, commit: str, tmp_path: Path
) -> None:
    whole = mirror_of(commit)
    pin = Pin(URL, branch, commit, absent_in(whole, commit))
    begun = time.monotonic()
    found = mirror.fetch(pin, tmp_path, Origin.of(str(whole)), Printer(), offline=False)
    print(f"{branch}: {time.monotonic() - begun:.1f} s; left out: {pin.exclude}")  # noqa: T201 as above
    assert mirror.fetch(pin, tmp_path, Origin.of(URL), Printer(), offline=True) == found
    assert mirror.size(found) < mirror.size(whole) / 3


@pytest.mark.parametrize("name", ["macos-r1.8-cuda9.2", "linux-r1.8-cpu"])
def test_a_recipes_tree_is_the_pinned_commit_with_its_patches_and_assets_twice_the_same(
    name: str, tmp_path: Path
) -> None:
    recipe = recipes.read(name)
    table, whole = recipe.source, mirror_of(recipe.source.commit)
    job = RecipeJob(recipe=recipe, host_file=HostFile(build_out=tmp_path), listener=Printer())
    pin = Pin(
        table.url, table.branch, table.commit, (*table.exclude, *absent_in(whole, table.commit))
    )
    found = mirror.fetch(pin, job.places.git, Origin.of(str(whole)), job.listener, offline=False)
    inputs = Inputs(
        mirror=found, commit=pin.commit, epoch=GitRepository(found).epoch(pin.commit), programs=None
    )
    table = table.changed(exclude=pin.exclude)
    first = source.run(job, table, FetchTable(), inputs)
    changed = WorkTree(first.path).changes(table.commit, first.content)
    assert source.run(job, table, FetchTable(), inputs) == first
    assert source.damage(table, first) is None
    assert set(table.assets) <= set(changed)
    assert all((first.path / path).is_file() for path, change in changed.items() if change.mode)
