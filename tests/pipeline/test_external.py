"""What a recipe's tree and its Bazel download, the lock that fits, and the output base that Bazel believes."""

import hashlib
import io
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests.making import make_file
from tests.tools.bazel.test_workspaces import binary
from tests.upstream import commit

from tfwright.documents.recipe import FetchTable, SubstituteTable
from tfwright.pipeline import external
from tfwright.pipeline.external import (
    ExternalRules,
    RecipePins,
    changed_repositories,
    discard_repository,
    record_repositories,
)
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
        return external.lock_of_inputs(job, pins, inputs)

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
    assert [
        *ExternalRules(job, pins, repository).without_unneeded(None).pins.fetch.substitutes
    ] == ["gone"]

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
    assert ExternalRules(job, pins, repository).without_unneeded(locked).pins == pins


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Make an output base with one archive and Bazel's own link."""
    base = tmp_path / "base"
    make_file(base / "external/eigen/Eigen/Core", "int one;\n")
    (base / "external/@eigen.marker").write_text("made\n", "utf-8")
    (base / "external/bazel_tools").symlink_to(tmp_path)
    return base


def test_a_repository_as_bazel_left_it_is_unchanged(base: Path, tmp_path: Path) -> None:
    kept = tmp_path / "external.json"
    record_repositories(base, kept)
    (base / "external/eigen/Eigen/Core").touch()
    (base / "external/new").mkdir()
    assert changed_repositories(base, kept) == []


def test_the_bytes_of_a_repository_that_looks_as_before_are_not_read_again(
    base: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "external.json"
    record_repositories(base, kept)
    glance, _ = json.loads(kept.read_bytes())["eigen"]
    kept.write_text(json.dumps({"eigen": [glance, "as read before"]}), "utf-8")
    record_repositories(base, kept)
    assert "as read before" in kept.read_text("utf-8")


@pytest.mark.parametrize("harm", ["edit", "add", "remove", "link"])
def test_a_change_is_seen_also_where_the_time_is_put_back(
    base: Path, tmp_path: Path, harm: str
) -> None:
    kept = tmp_path / "external.json"
    record_repositories(base, kept)
    source = base / "external/eigen/Eigen/Core"
    state = source.stat()
    if harm == "edit":
        source.write_text("int two;\n", "utf-8")
        os.utime(source, ns=(state.st_atime_ns, state.st_mtime_ns))
    elif harm == "add":
        source.with_name("More").touch()
    else:
        source.unlink()
    if harm == "link":
        source.symlink_to("/etc/hostname")
    assert changed_repositories(base, kept) == ["eigen"]
    discard_repository(base, "eigen")
    assert [path.name for path in (base / "external").iterdir()] == ["bazel_tools"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"eigen": 1}', '{"eigen": [1, 2]}'])
def test_a_damaged_record_is_none(base: Path, tmp_path: Path, text: str) -> None:
    kept = make_file(tmp_path / "external.json", text)
    assert changed_repositories(base, kept) == []
