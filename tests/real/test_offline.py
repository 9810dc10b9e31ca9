"""Three archives and a clone that no server has, built by real Bazels from what is here, where there is no network at all."""

import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file, make_folder
from tests.results import configured_of, facts_of, inputs_of, tree_of

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import CompileTable, ConfigureTable, NcclTable
from tfwright.documents.release import Release
from tfwright.errors import SupplyError, ToolError
from tfwright.pipeline.compile.invocation import Invocation
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Built, Copied
from tfwright.pipeline.stages import compile as compiling
from tfwright.tools.bazel import client as bazel_client
from tfwright.tools.git import clones
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.mirror import Origin
from tfwright.tools.process import isolation
from tfwright.vault.store import Store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        isolation.isolation_obstacle() is not None, reason=str(isolation.isolation_obstacle())
    ),
]

VERSIONS = ("0.17.2", "0.24.1", "0.26.1")
WORKSPACE = """\
load("@bazel_tools//tools/build_defs/repo:git.bzl", "git_repository")
load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_archive")
"""
RULE = """
http_archive(
    name = "{name}",
    urls = ["https://gone.invalid/{file}"],
    sha256 = "{sha256}",
    strip_prefix = "{name}-1.0",
    build_file_content = 'exports_files(["word.txt"])',
)
"""
REMOTE = "https://gone.invalid/four.git"
CLONING = """
git_repository(
    name = "four",
    remote = "{remote}",
    commit = "{commit}",
)
"""
BUILD = """\
genrule(
    name = "sentence",
    srcs = ["@one//:word.txt", "@two//:word.txt", "@three//:word.txt", "@four//:word.txt"],
    outs = ["sentence.txt"],
    cmd = "cat $(SRCS) > $@; cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' ' >> $@",
)
"""


@cache
def archives() -> Mapping[str, bytes]:
    """Return three archives, each with one file below a directory, by file name; made once, since they hold the time."""
    return {
        "one.tar.gz": _tar("one", "w:gz"),
        "two.tar.bz2": _tar("two", "w:bz2"),
        "three.zip": _zip("three"),
    }


def _tar(name: str, mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload] # the mode is one of two
        member = tarfile.TarInfo(f"{name}-1.0/word.txt")
        member.size = len(name) + 1
        archive.addfile(member, io.BytesIO(f"{name}\n".encode()))
    return buffer.getvalue()


def _zip(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(f"{name}-1.0/word.txt", f"{name}\n")
    return buffer.getvalue()


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Return a repository with one commit behind the one that is cloned, and one after it."""
    path = make_folder(tmp_path / "upstream")
    for name, text in {"WORKSPACE": "", "BUILD": 'exports_files(["word.txt"])'}.items():
        (path / name).write_text(text, "utf-8")
    git(path, "init", "--quiet", "--initial-branch=main")
    for word in ("before", "four", "after"):
        (path / "word.txt").write_text(f"{word}\n", "utf-8")
        git(path, "add", ".")
        git(
            path,
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "--quiet",
            f"--message={word}",
        )
    return path


def git(repository: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=repository, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture(params=VERSIONS)
def binary(request: pytest.FixtureRequest, obtain_bazel: Callable[[str], Path]) -> Path:
    version: str = request.param
    return obtain_bazel(version)


@pytest.fixture
def project(job: RecipeJob, tmp_path: Path, upstream: Path) -> RecipeJob:
    """Return an offline job whose tree wants the archives and the clone; none of them is here."""
    release = job.recipe.changed(source=job.recipe.source.changed(release=Release(1, 0)))
    made = replace(
        job,
        recipe=release,
        host_file=HostFile(build_out=tmp_path / "build_out", jobs=1),
        offline=True,
    )
    rules = [
        RULE.format(name=name.partition(".")[0], file=name, sha256=digest(content))
        for name, content in archives().items()
    ]
    for name, content in {
        "WORKSPACE": WORKSPACE
        + "".join(rules)
        + CLONING.format(remote=REMOTE, commit=git(upstream, "rev-parse", "main~")),
        "BUILD": BUILD,
        "tools/bazel.rc": "",
    }.items():
        make_file(made.places.tree / name, content)
    made.places.home.mkdir()
    return made


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def copied(project: RecipeJob, upstream: Path) -> Copied:
    """Bring what is cloned."""
    wanted = Clone(REMOTE, git(upstream, "rev-parse", "main~"))
    repository = clones.fetch(wanted, project.places.git, Origin.of(str(upstream)), offline=False)
    return Copied(remote=wanted.remote, commit=wanted.commit, repository=repository)


def fill(job: RecipeJob) -> None:
    """Put the archives into the job's store."""
    store = Store(job.places.vault / "repository_cache")
    for content in archives().values():
        with store.admitting(digest(content), "the test") as path:
            path.write_bytes(content)


def build(job: RecipeJob, binary: Path, *copied: Copied) -> Built:
    facts = facts_of(compiler="cc")
    pinned = {"commit": job.recipe.source.commit, "epoch": 0}
    inputs = inputs_of(job.places.git, binary, **pinned, clones=copied)
    tree = tree_of(job, **pinned, content="1" * 40)
    configured = configured_of(job.places.tree / "tools/bazel.rc")
    table = CompileTable(
        target="//:sentence", flags=("--spawn_strategy=standalone", "--genrule_strategy=standalone")
    )
    return compiling.run(
        job, table, job.recipe.bazel, ConfigureTable(), NcclTable(), facts, inputs, tree, configured
    )


def test_a_build_without_a_network_finds_everything_here(
    project: RecipeJob, binary: Path, copied: Copied
) -> None:
    fill(project)
    built = build(project, binary, copied)
    assert built.outputs[0].path.read_text("utf-8") == "one\ntwo\nthree\nfour\nlo\n"


def test_the_same_build_without_the_store_fails_and_names_what_it_wanted(
    project: RecipeJob, binary: Path, copied: Copied
) -> None:
    with fails(SupplyError, "https://gone.invalid/"):
        build(project, binary, copied)


def test_the_same_build_without_the_clone_fails_and_names_the_repository(
    project: RecipeJob, binary: Path
) -> None:
    fill(project)
    with fails(ToolError, "four"):
        build(project, binary)


def test_a_server_that_has_the_network_is_not_used(
    project: RecipeJob, binary: Path, copied: Copied
) -> None:
    fill(project)
    online = replace(project, offline=False)
    calls = Invocation(
        job=online,
        table=CompileTable(),
        release=online.recipe.source.release,
        binary=binary,
        options=bazel_client.options(binary, online.places.install_root),
        python=Path(sys.executable),
    )
    client = calls.client
    calls.write_settings()
    client.run(client.command("info"), project.log("info"), lambda _: None)
    before = client._server_pid()
    try:
        built = build(project, binary, copied)
    finally:
        client.stop()
    assert before
    assert built.outputs[0].path.read_text("utf-8").endswith("\nlo\n")
