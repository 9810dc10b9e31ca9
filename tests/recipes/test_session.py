from dataclasses import replace
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
def test_each_stage_before_configure_runs_once_before_the_questions(tmp_path: Path) -> None:
    heard = Notebook()
    path = make_file(tmp_path / "mine.toml", recipes.find("demo").read_bytes())
    job = RecipeJob(
        recipe=recipes.read(str(path)),
        host_file=HostFile(build_out=tmp_path / "build_out"),
        listener=heard,
    )
    session.record(job, path, lambda _: "")
    assert heard.stages == ["check", "fetch", "source"]
    # A second run is shown what the first one kept, and looks at the host again.
    session.record(replace(job, until="done"), path, lambda _: "")
    assert heard.stages[3:] == ["check"]
    # Nothing that ./configure wrote or edited stays, so that the stage configure runs again.
    tree = WorkTree(job.places.tree)
    assert not [*tree.changed(), *tree.strangers()]
