from pathlib import Path

import pytest
from tests.making import make_file
from tests.results import Notebook

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.pipeline.job import RecipeJob
from tfwright.recipes import session
from tfwright.tools.git.work_tree import WorkTree


@pytest.mark.slow
def test_recording_a_dialogue_fetches_no_archive_and_leaves_the_tree_as_it_was(
    tmp_path: Path,
) -> None:
    heard = Notebook()
    path = make_file(tmp_path / "mine.toml", recipes.find("demo").read_bytes())
    job = RecipeJob(
        recipe=recipes.read(str(path)),
        host_file=HostFile(build_out=tmp_path / "build_out"),
        listener=heard,
    )
    session.record(job, path, lambda _: "")
    # Nothing that ./configure wrote or edited stays, so that the stage configure runs again.
    tree = WorkTree(job.places.tree)
    assert not [*job.places.build_out.glob("vault/repository_cache/content_addressable/sha256/*")]
    assert not [*tree.changed_files(), *tree.foreign_files()]
