"""What a recipe's tree and its Bazel download, and the lock that fits."""

import io
import zipfile
from pathlib import Path

import pytest
from tests.tools.bazel.test_workspaces import binary
from tests.upstream import commit

from tfwright.pipeline import external
from tfwright.pipeline.external import RecipePins
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Inputs, Programs
from tfwright.pipeline.stage import Artefact
from tfwright.vault.lock import Lock

ARCHIVE = (
    'http_archive(name = "{name}", sha256 = "{sha256}", '
    'urls = ["https://example.org/{name}.tar.gz"])\n'
)


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    """Return a Bazel that downloads an archive of its own."""
    jar = io.BytesIO()
    text = ARCHIVE.format(name="rules_cc", sha256="2" * 64)
    with zipfile.ZipFile(jar, "w") as inner:
        inner.writestr("tools.WORKSPACE", text)
    bazel = Artefact.of(binary(tmp_path, jar.getvalue()))
    return Programs(bazel=bazel, bazel_origin="PATH", python=tmp_path)


def test_what_bazel_itself_downloads_is_read_and_locked_with_what_the_tree_does(
    job: RecipeJob, tmp_path: Path, programs: Programs
) -> None:
    upstream = tmp_path / "upstream"
    text = ARCHIVE.format(name="zlib", sha256="1" * 64)
    pinned = commit(upstream, {"WORKSPACE": text})
    recipe = job.recipe
    source = recipe.source.model_copy(update={"commit": pinned})
    pins = RecipePins(source, recipe.bazel, recipe.fetch)
    repository = upstream / ".git"

    alone = external.read(job, pins, repository, None)
    assert [found.name for found in alone.repositories] == ["zlib"]
    rules = external.read(job, pins, repository, programs)
    assert [found.name for found in rules.repositories] == ["zlib", "rules_cc"]

    def locked(programs: Programs | None) -> Lock:
        inputs = Inputs(mirror=repository, commit=pinned, epoch=0, programs=programs)
        return external.known_lock(job, pins, inputs)

    found = locked(programs)
    names = [archive.names for archive in found.archives]
    assert sorted(names) == [("rules_cc",), ("zlib",)]
    (bazel,) = found.bazel.binaries.values()
    assert bazel.sha256 == programs.bazel.sha256
    # Another system's binary cannot be looked at here.
    assert not locked(None).bazel.binaries
