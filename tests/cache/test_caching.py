"""The cache in the course of a job: laid out, counted, sent to the server after a good build."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.cache.backend import Backend
from tests.cache.builds import ACTION, OTHER, Build, overwrite, sha256
from tests.making import make_file
from tests.results import configured_of, facts_of

from tfwright.documents.host_file import CacheTable
from tfwright.documents.recipe import CompileTable, ConfigureTable
from tfwright.pipeline import caching
from tfwright.pipeline.caching import CompilerChoice
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Built
from tfwright.progress import Listener
from tfwright.tools import files
from tfwright.tools.cache import toolchain, usage
from tfwright.tools.cache.store import CacheStore
from tfwright.tools.cache.toolchain import Toolchain
from tfwright.tools.cache.usage import CacheUse

KNOWN = {"disk_cache": ""}
Hosts = Callable[..., RecipeJob]


@dataclass
class OneCompiler:
    """What decides which compiler a build runs."""

    version: str = "12"

    def toolchain(self, _: Path) -> Toolchain:
        return {"gcc": self.version}


@pytest.fixture
def job(job: RecipeJob, listener: Listener) -> RecipeJob:
    job.places.tree.mkdir(parents=True)
    return replace(job, listener=listener)


def compiled(
    job: RecipeJob, act: Callable[[Build], object], *, version: str = "0.26.1", compiler: str = "12"
) -> CacheUse | None:
    """Run a Bazel that does something with the cache, if it gets one."""
    choice = cast("CompilerChoice", OneCompiler(compiler))
    assert caching.recover_entries(job)
    with caching.open_cache(job, choice, KNOWN, version) as cache:
        if cache:
            store = CacheStore(job.host_file.cache_directory, 1 << 30)
            act(Build(cache, store, flat=version != "7.4.1"))
        return caching.record_use(job, cache)


def adding(*actions: str) -> Callable[[Build], None]:
    """Return a build that makes a file by each of some actions."""

    def add(build: Build) -> None:
        for action in actions:
            build.add(action, action.encode())

    return add


def reading(build: Build) -> None:
    build.read(ACTION)


def with_cache(job: RecipeJob, **table: object) -> RecipeJob:
    cache = CacheTable.model_validate(table)
    return replace(job, host_file=job.host_file.changed(cache=cache))


def built(use: CacheUse | None) -> Built:
    return Built(target="//a", outputs=(), actions=1, cache=use)


@pytest.mark.parametrize("version", ["0.17.2", "2.1.0", "7.4.1"])
def test_the_next_build_hits_what_a_build_added(job: RecipeJob, version: str) -> None:
    use = compiled(job, adding(ACTION), version=version)
    assert caching.summary(built(use)).endswith(", 0 of 1 hits")
    caching.forget_use(job)
    use = compiled(job, reading, version=version)
    assert caching.summary(built(use)).endswith(", 1 of 1 hits")
    assert not job.private_cache.joinpath(use.toolchain if use else "").exists()


def test_another_compiler_has_a_cache_of_its_own(job: RecipeJob) -> None:
    compiled(job, adding(ACTION))
    offered: set[str] = set()
    compiled(job, lambda build: offered.update(build.offered), compiler="13")
    assert ACTION not in offered


def test_the_runs_of_an_interrupted_build_are_counted_together(job: RecipeJob) -> None:
    compiled(job, adding(ACTION))
    compiled(job, reading)
    use = compiled(job, reading)
    assert use
    assert (use.lookups, use.hits) == (3, 2)
    caching.forget_use(job)
    use = compiled(job, reading)
    assert use
    assert use.hits == 1


@pytest.mark.parametrize(
    ("table", "version", "noted"),
    [({"enabled": False}, "0.26.1", False), ({}, "0.16.1", True), ({}, "0.3.1", True)],
)
def test_a_build_without_a_cache_says_so_unless_it_was_asked_for(
    job: RecipeJob, notes: list[str], table: dict[str, object], version: str, *, noted: bool
) -> None:
    asked = with_cache(job, **table)
    assert compiled(asked, adding(ACTION), version=version) is None
    assert any(version in note for note in notes) == noted
    assert caching.summary(built(None)) == "cache off"


def test_a_cache_that_cannot_be_opened_is_no_reason_to_fail(
    job: RecipeJob, notes: list[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    asked = with_cache(job, directory=tmp_path / "file/cache")
    assert compiled(asked, adding(ACTION)) is None
    assert str(tmp_path / "file/cache") in notes[0]


def test_a_disk_that_refuses_links_is_no_reason_to_fail(
    job: RecipeJob, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tfwright.tools.cache.private._records_access", refused)
    assert compiled(job, adding(ACTION)) is None
    assert "No space left on device" in notes[0]
    assert not job.private_cache.exists()


def test_what_a_killed_build_changed_is_not_believed(job: RecipeJob) -> None:
    compiled(job, adding(ACTION))
    choice = cast("CompilerChoice", OneCompiler())
    with caching.open_cache(job, choice, KNOWN, "0.26.1") as cache:
        assert cache
        overwrite(cache.folder / sha256(ACTION.encode()), b"spoilt")
    assert not caching.recover_entries(job)
    assert caching.recover_entries(job)


def test_faults_of_the_cache_are_a_note(job: RecipeJob, notes: list[str]) -> None:
    compiled(job, lambda build: build.add(ACTION, payload=b"\xff"))
    assert "an entry could not be read (1x)" in notes[-1]


@pytest.fixture
def hosts(job: RecipeJob, backend: Backend, tmp_path: Path) -> Hosts:
    """Return what makes the job of a host, whose cache is its own and whose secret is shared."""

    def host(name: str, **table: object) -> RecipeJob:
        directory, secret = tmp_path / name, tmp_path / "secret"
        return with_cache(job, directory=directory, secret=secret, server=backend.url, **table)

    return host


def test_a_good_build_is_sent_and_another_host_hits_it(hosts: Hosts, notes: list[str]) -> None:
    writer = hosts("writer")
    compiled(writer, adding(ACTION))
    # Interrupted, and continued: both runs are of one build.
    use = compiled(writer, adding(OTHER))
    caching.push_entries(writer, built(use))
    assert "Gave 2 results" in notes[-1]
    reader = hosts("reader")
    use = compiled(reader, reading)
    assert use
    assert (use.hits, use.faults) == (1, {})
    assert "Took 2 results" in notes[-1]


@pytest.mark.parametrize("table", [{"writes": False}, {"server": None}])
def test_nothing_is_sent_where_the_host_file_forbids_it(
    hosts: Hosts, backend: Backend, table: dict[str, object]
) -> None:
    asked = hosts("host")
    silent = with_cache(asked, **{**asked.host_file.cache.model_dump(), **table})
    caching.push_entries(silent, built(compiled(silent, adding(ACTION))))
    assert backend.content == {}


def test_an_offline_build_asks_no_server(hosts: Hosts, backend: Backend) -> None:
    offline = replace(hosts("host"), offline=True)
    caching.push_entries(offline, built(compiled(offline, adding(ACTION))))
    assert (backend.asked, backend.content) == ([], {})


def test_a_compiler_that_changed_before_publish_sends_nothing(
    hosts: Hosts, backend: Backend
) -> None:
    asked = hosts("host")
    compiled(asked, adding(ACTION))
    caching.push_entries(asked, built(CacheUse(toolchain="b" * 64)))
    assert backend.content == {}


def test_a_file_that_is_damaged_on_the_server_is_sent_again_by_the_host_that_met_it(
    hosts: Hosts, backend: Backend
) -> None:
    writer, reader = hosts("writer"), hosts("reader")
    caching.push_entries(writer, built(compiled(writer, adding(ACTION))))
    name = f"/cas/{sha256(ACTION.encode())}"
    backend.content[name] = b"X" * len(ACTION)
    files.remove(writer.places.cache_entries)
    caching.push_entries(reader, built(compiled(reader, adding(ACTION))))
    assert backend.content[name] == ACTION.encode()


def test_a_server_that_fails_is_a_note_of_publish(
    hosts: Hosts, backend: Backend, notes: list[str]
) -> None:
    asked = hosts("host")
    use = compiled(asked, adding(ACTION))
    backend.status = 500
    caching.push_entries(asked, built(use))
    assert "HTTP 500" in notes[-1]


@pytest.mark.parametrize(
    "place",
    [
        {"compiling": {"env": {"CC": "/opt/gcc-11"}}},
        {"compiling": {"flags": ["--action_env=CLANG_COMPILER_PATH=/opt/gcc-11"]}},
        {"answering": {"answers": {"GCC_HOST_COMPILER_PATH": "/opt/gcc-11"}}},
        {"exported": {"GCC_HOST_COMPILER_PATH": "/opt/gcc-11"}},
        # Where the host file names nvcc's compiler, only this file has it.
        {"bazelrc": 'build --action_env GCC_HOST_COMPILER_PATH="/opt/gcc-11"\n'},
    ],
)
def test_a_compiler_is_part_of_the_toolchain_wherever_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: dict[str, Any]
) -> None:
    def of_host(compilers: Sequence[str], *_: object, **__: object) -> Toolchain:
        return dict.fromkeys(compilers, "")

    monkeypatch.setattr(toolchain, "host_toolchain", of_host)
    bazelrc = make_file(tmp_path / "bazelrc", place.get("bazelrc", ""))
    choice = CompilerChoice(
        CompileTable.model_validate(place.get("compiling", {})),
        ConfigureTable.model_validate(place.get("answering", {})),
        facts_of(),
        Path(sys.executable),
        configured_of(bazelrc, exported=place.get("exported", {})),
    )
    assert "/opt/gcc-11" in choice.toolchain(tmp_path)


def test_lines_of_the_history_that_cannot_be_read_are_left_out(job: RecipeJob) -> None:
    root = job.host_file.cache_directory
    assert usage.read(root) == ()
    compiled(job, adding(ACTION))
    with (root / usage.HISTORY).open("a", encoding="utf-8") as stream:
        stream.write('{"recipe": "a", "finis')
    (build,) = usage.read(root)
    assert (build.recipe, build.use.stored) == (job.name, 1)
