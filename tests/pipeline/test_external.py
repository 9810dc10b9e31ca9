"""What a recipe's tree and its Bazel download, and the lock that fits."""

import hashlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests.making import make_file
from tests.tools.bazel.test_workspaces import binary
from tests.upstream import commit

from tfwright.documents.recipe import FetchTable, SubstituteTable
from tfwright.pipeline import external
from tfwright.pipeline.external import ExternalRules, RecipePins
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Inputs, Programs
from tfwright.pipeline.stage import Artefact
from tfwright.vault.lock import Lock, LockedBazel, LockedSubstitute, Tensorflow

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
    return Programs(bazel=bazel, python=tmp_path)


def test_what_bazel_itself_downloads_is_read_and_locked_with_what_the_tree_does(
    job: RecipeJob, tmp_path: Path, programs: Programs
) -> None:
    upstream = tmp_path / "upstream"
    text = ARCHIVE.format(name="zlib", sha256="1" * 64)
    pinned = commit(upstream, {"WORKSPACE": text})
    recipe = job.recipe
    source = recipe.source.changed(commit=pinned)
    pins = RecipePins(source, recipe.bazel, recipe.fetch)
    repository = upstream / ".git"

    alone = ExternalRules(job, pins, repository).rules()
    assert [found.name for found in alone.repositories] == ["zlib"]
    rules = ExternalRules(job, pins, repository, programs).rules()
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


def test_a_substitute_that_is_only_for_a_missing_archive_gives_way_to_the_pinned_one(
    job: RecipeJob, tmp_path: Path
) -> None:
    upstream = tmp_path / "upstream"
    digest = hashlib.sha256(b"here").hexdigest()
    here, gone = (
        ARCHIVE.format(name=name, sha256=sha256)
        for name, sha256 in (("here", digest), ("gone", "2" * 64))
    )
    pinned = commit(upstream, {"WORKSPACE": here + gone})
    make_file(tmp_path / "drop/file", b"here")
    settings = job.host_file.changed(drop=tmp_path / "drop")
    job = replace(job, host_file=settings, offline=True)
    tables = {
        name: SubstituteTable(
            reason="why",
            replaces=sha256,
            sha256="3" * 64,
            urls=("https://example.org/x.tar.gz",),
            only_if_missing=True,
        )
        for name, sha256 in (("here", digest), ("gone", "2" * 64))
    }
    recipe = job.recipe
    source = recipe.source.changed(commit=pinned)
    pins = RecipePins(source, recipe.bazel, FetchTable(substitutes=tables))
    repository = upstream / ".git"
    assert [*ExternalRules(job, pins, repository).in_force(None).pins.fetch.substitutes] == ["gone"]

    # A lock that was written where both were missing decides, whatever is here now.
    replaced = [
        LockedSubstitute(sha256=one.replaces or "", source="x", reason="why", used="3" * 64)
        for one in tables.values()
    ]
    locked = Lock(
        tensorflow=Tensorflow(commit=pinned, tree=pinned),
        bazel=LockedBazel(version="1.0.0"),
        substitutes=tuple(replaced),
    )
    assert ExternalRules(job, pins, repository).in_force(locked).pins == pins
