"""A small recipe all of whose inputs are on this host, as `fetch` leaves them."""

import sys
from pathlib import Path

import pytest
from tests.making import make_file
from tests.upstream import commit, run_git

from tfwright.documents.host_file import HostFile
from tfwright.lock import inputs as lock_inputs
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Copied, Inputs, Programs
from tfwright.pipeline.stage import Artefact
from tfwright.progress import SILENCE, Listener
from tfwright.tools.git import clones, mirror
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.mirror import Origin, Pin


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a repository with one commit."""
    commit(tmp_path / "tree", {"BUILD": "one\n"})
    return tmp_path / "tree"


OWN = """\
summary = "A recipe for tests"

[source]
url = "{tree}"
branch = "main"
commit = "{commit}"
release = "1.8"
patches = ["main/0001-two.patch"]

[host]
system = "any"
machine = "any"
python = "any"

[bazel]
version = "0.26.1"
"""


@pytest.fixture
def document(tree: Path, tmp_path: Path) -> Path:
    """Write a recipe of that commit, with a patch next to it."""
    make_file(tmp_path / "mine/patches/main/0001-two.patch", "a patch")
    return make_file(
        tmp_path / "mine/small.toml",
        OWN.format(tree=tree.as_uri(), commit=run_git("rev-parse", "HEAD", cwd=tree)),
    )


@pytest.fixture
def small_job(document: Path, tmp_path: Path, listener: Listener) -> RecipeJob:
    """Return a job of that recipe, which keeps its notes."""
    settings = HostFile(build_out=tmp_path / "build_out")
    return RecipeJob.of(str(document), settings, listener=listener)


@pytest.fixture
def brought(small_job: RecipeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inputs:
    """Let all inputs of the job be here: its commit, a clone, a Bazel and an archive."""
    places, source = small_job.places, small_job.recipe.source
    places.own.mkdir(parents=True)
    mirrored = mirror.fetch(
        Pin.of(source), places.git, Origin.of(source.url), SILENCE, offline=False
    )
    cloned = commit(tmp_path / "rules", {"BUILD": ""})
    clone = Clone((tmp_path / "rules").as_uri(), cloned)
    copy = clones.fetch(clone, places.git, Origin.of(clone.remote), offline=False)
    for name, content in (("bazel", b"a Bazel"), ("archive", b"an archive")):
        (tmp_path / name).write_bytes(content)
    made = Inputs(
        mirror=mirrored,
        commit=source.commit,
        epoch=1,
        programs=Programs(bazel=Artefact.of(tmp_path / "bazel"), python=Path(sys.executable)),
        archives=(Artefact.of(tmp_path / "archive"),),
        clones=(Copied(remote=clone.remote, commit=cloned, repository=copy),),
    )
    monkeypatch.setattr(lock_inputs, "fetch_inputs", lambda *_, **__: made)
    return made
