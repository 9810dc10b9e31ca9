"""The engine: what runs, what is kept, and why."""

import datetime as dt
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from tests.failing import fails
from tests.making import make_file
from tests.remedies.following import CommandLine
from tests.results import for_target

from tfwright.documents.recipe import CompileTable, Recipe, VerifiedTable
from tfwright.errors import HostError, RecipeError, ToolError, invoke
from tfwright.pipeline import engine, stamps
from tfwright.pipeline.job import Job, RecipeJob
from tfwright.pipeline.stage import Artefact, Result, Stage
from tfwright.tools import files
from tfwright.tools.process import file_lock, isolation, pipes
from tfwright.tools.process.command import Command


class Egg(Result):
    """What the first stage makes."""

    shell: Artefact
    kind: str


class Bird(Result):
    """What the second stage makes."""

    feathers: Artefact


RUNS: list[str] = []
LOOK = Command(("/bin/readlink", "/proc/self/ns/net"), Path("/"), {})
SURROUNDINGS = {"the nest": "twigs"}


def lay(job: RecipeJob, table: CompileTable) -> Egg:
    RUNS.append("lay")
    path = make_file(job.places.own / "egg", "egg")
    return Egg(shell=Artefact.of(path), kind=table.target.rpartition(":")[2])


def hatch(job: RecipeJob, egg: Egg) -> Bird:
    RUNS.append("hatch")
    if egg.kind == "stone":
        raise ToolError("A stone does not hatch", remedy="Take an egg.")
    path = make_file(job.places.own / "bird", egg.shell.path.read_text("utf-8") + " hatched")
    return Bird(feathers=Artefact.of(path))


def module(name: str, run: object, **extra: object) -> ModuleType:
    made = ModuleType(f"nest.{name}", f"{name.title()} something.")
    vars(made).update(run=run, **extra)
    return made


@pytest.fixture(autouse=True)
def _pipeline(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    stages = (
        Stage(module("lay", lay, inputs=lambda: dict(SURROUNDINGS))),
        Stage(module("hatch", hatch)),
    )
    monkeypatch.setattr(engine, "PIPELINE", stages)
    RUNS.clear()
    yield
    SURROUNDINGS["the nest"] = "twigs"


@pytest.fixture
def nest(job: RecipeJob) -> RecipeJob:
    return replace(job, until="hatch")


@pytest.fixture
def built(nest: RecipeJob) -> RecipeJob:
    """Return a job that was built once; what runs from now on is counted."""
    engine.build(nest)
    RUNS.clear()
    return nest


def reasons(job: RecipeJob) -> list[str]:
    return [planned.why for planned in engine.plan(job)]


def test_a_remedy_names_the_recipe_that_failed(
    nest: RecipeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: RecipeJob, __: CompileTable) -> Egg:
        remedy = f"Use '{invoke('fetch')}', then '{invoke('build --again fetch')}'."
        raise ToolError("It broke", remedy=remedy)

    lays = (Stage(module("lay", fail)),)
    monkeypatch.setattr(engine, "PIPELINE", lays)
    with pytest.raises(ToolError) as caught:
        engine.build(replace(nest, until="lay"))
    named = f"--recipe {nest.argument}"
    shown = f"Use 'invoke fetch {named}', then 'invoke build --again fetch {named}'."
    assert caught.value.remedy == shown


def test_without_a_recipe_a_remedy_names_none() -> None:
    fault = ToolError("It broke", remedy=f"Use '{invoke('fetch')}'.")
    assert fault.remedy == "Use 'invoke fetch'."


def test_a_first_build_runs_every_stage_in_order(nest: RecipeJob) -> None:
    assert isinstance(engine.build(nest).last, Bird)
    assert RUNS == ["lay", "hatch"]


def test_a_build_says_before_a_stage_what_is_hardly_meant_in_it(
    nest: RecipeJob, monkeypatch: pytest.MonkeyPatch, notes: list[str]
) -> None:
    warned = Stage(module("lay", lay, warnings=lambda: [("Laid twice", "Take one nest.")]))
    monkeypatch.setattr(engine, "PIPELINE", (warned,))
    first = replace(nest, until="lay")
    for _ in range(2):
        engine.build(first)
    assert notes == ["Laid twice: Take one nest."]


def test_a_second_build_runs_nothing_and_returns_the_same(nest: RecipeJob) -> None:
    first = engine.build(nest)
    RUNS.clear()
    assert engine.build(nest) == first
    assert RUNS == []


def test_the_plan_of_a_finished_build_keeps_everything(built: RecipeJob) -> None:
    assert reasons(built) == ["", ""]


def test_the_plan_of_a_fresh_build_says_what_follows_what(nest: RecipeJob) -> None:
    assert reasons(nest) == ["no earlier result", "follows lay"]
    assert RUNS == []


def test_a_changed_recipe_table_runs_its_stage_and_the_plan_says_so(built: RecipeJob) -> None:
    changed = for_target(built, "//egg:duck")
    assert reasons(changed)[0] == "the recipe's [compile] changed"


def test_a_changed_result_is_named_by_the_stage_that_made_it(built: RecipeJob) -> None:
    duck = for_target(built, "//egg:duck")
    engine.build(replace(duck, until="lay"))
    assert reasons(duck) == ["", "the result of lay changed"]


def test_who_verified_a_recipe_runs_nothing_again(
    nest: RecipeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copied(job: RecipeJob, recipe: Recipe) -> Egg:
        return lay(job, recipe.compile)

    monkeypatch.setattr(engine, "PIPELINE", (Stage(module("lay", copied)),))
    first = replace(nest, until="lay")
    engine.build(first)
    verified = VerifiedTable(until="seal", on=dt.date(2026, 1, 1), host="a nest", by="Ada")
    assert reasons(
        replace(first, recipe=first.recipe.model_copy(update={"verified": verified}))
    ) == [""]
    renamed = first.recipe.model_copy(update={"summary": "Another"})
    assert reasons(replace(first, recipe=renamed)) == ["the recipe's summary changed"]


def test_a_changed_outside_file_runs_its_stage_and_is_named(built: RecipeJob) -> None:
    SURROUNDINGS["the nest"] = "feathers"
    assert reasons(built)[0] == "the nest changed"


def test_a_stage_that_makes_the_same_again_does_not_run_the_next(built: RecipeJob) -> None:
    SURROUNDINGS["the nest"] = "feathers"
    engine.build(built)
    assert RUNS == ["lay"]


def test_what_only_says_how_a_result_was_made_does_not_run_the_next(
    built: RecipeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Egg, "incidental", frozenset({"kind"}))
    engine.build(for_target(built, "//egg:duck"))
    assert RUNS == ["lay", "hatch"]
    RUNS.clear()
    engine.build(for_target(built, "//egg:goose"))
    assert RUNS == ["lay"]


def test_the_home_of_programs_holds_neither_settings_nor_an_unpacked_bazel_when_a_stage_begins(
    nest: RecipeJob,
) -> None:
    home = nest.places.home
    for path in (
        home / ".gitconfig",
        home / ".pydistutils.cfg",
        home / ".config/pip/pip.conf",
        home / ".cache/bazel/install/library",
    ):
        make_file(path, "")
    engine.build(nest)
    assert [path.name for path in home.iterdir()] == [".gitconfig"]


def test_a_home_that_is_a_link_is_left_as_it_is(nest: RecipeJob, tmp_path: Path) -> None:
    mine = make_file(tmp_path / "mine/.cache/letter", "")
    nest.places.own.mkdir(parents=True)
    nest.places.home.symlink_to(tmp_path / "mine")
    engine.build(nest)
    assert mine.exists()
    assert not nest.places.home.is_symlink()


def test_a_stage_asked_for_again_runs(built: RecipeJob) -> None:
    engine.build(replace(built, again="hatch"))
    assert RUNS == ["hatch"]


def test_an_artefact_that_changed_on_disk_is_made_again(built: RecipeJob) -> None:
    (built.places.own / "bird").write_text("cat", "utf-8")
    assert reasons(built) == ["", "bird changed on disk"]


def test_an_artefact_that_is_gone_is_made_again(built: RecipeJob) -> None:
    (built.places.own / "egg").unlink()
    assert reasons(built)[0] == "egg is gone"


def test_an_artefact_that_was_only_touched_is_believed_after_a_look(built: RecipeJob) -> None:
    os.utime(built.places.own / "bird")
    assert reasons(built) == ["", ""]


def test_a_failed_stage_is_named_and_what_came_before_is_kept(nest: RecipeJob) -> None:
    stone = for_target(nest, "//egg:stone")
    with pytest.raises(ToolError) as caught:
        engine.build(stone)
    assert caught.value.stage == "hatch"
    assert reasons(stone) == ["", "no earlier result"]


def test_a_stage_that_fails_leaves_no_stamp_of_an_earlier_success(built: RecipeJob) -> None:
    with pytest.raises(ToolError):
        engine.build(for_target(built, "//egg:stone"))
    assert stamps.read(built, "hatch") is None


def test_a_stamp_cut_short_counts_as_none(built: RecipeJob) -> None:
    path = built.places.stamps / "hatch.json"
    path.write_bytes(path.read_bytes()[:40])
    assert reasons(built) == ["", "no earlier result"]


def test_only_the_stages_up_to_the_wanted_one_run(nest: RecipeJob) -> None:
    assert isinstance(engine.build(replace(nest, until="lay")).last, Egg)
    assert RUNS == ["lay"]


def test_a_fresh_build_runs_everything_again(built: RecipeJob) -> None:
    engine.build(replace(built, fresh=True))
    assert RUNS == ["lay", "hatch"]


def test_a_full_disk_is_the_hosts_fault_and_is_told_as_such(
    nest: RecipeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overflow(job: RecipeJob, table: CompileTable) -> Egg:  # noqa: ARG001 a stage's signature
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/file")

    monkeypatch.setattr(engine, "PIPELINE", (Stage(module("lay", overflow)),))
    with fails(HostError, "/some/file"):
        engine.build(replace(nest, until="lay"))


def test_a_wrong_stage_name_suggests_the_nearest() -> None:
    with fails(RecipeError, "hatch"):
        engine.stage_named("hach")


def test_a_build_is_told_who_holds_the_lock_and_a_killed_holder_frees_it(nest: RecipeJob) -> None:
    program = "import sys; from pathlib import Path; from tfwright.tools.process import file_lock as lock\n"
    program += "with lock.locked(Path(sys.argv[1]), 'invoke build --recipe small'): print('held', flush=True); sys.stdin.read()"
    holder = [sys.executable, "-c", program, str(nest.places.lock)]
    with subprocess.Popen(
        holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with fails(HostError, other.pid, "--recipe"):
            engine.build(nest)
        other.kill()
    engine.build(nest)


def test_a_plan_looks_for_the_commands_of_a_stage_when_they_are_asked_for(
    nest: RecipeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def steps(job: Job) -> tuple[Command, ...]:
        asked.append(job.name)
        return (LOOK,)

    stage = Stage(module("lay", lay, steps=steps))
    monkeypatch.setattr(engine, "PIPELINE", (stage,))
    (planned,) = engine.plan(replace(nest, until="lay"))
    assert not asked
    assert planned.steps() == (LOOK,)


def test_a_file_that_was_touched_is_hashed_again_only_once(
    built: RecipeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(built.places.own / "egg")
    hashed = list[Path]()
    read = files.sha256

    def hear(path: Path) -> str:
        hashed.append(path)
        return read(path)

    monkeypatch.setattr(files, "sha256", hear)
    for _ in range(2):
        engine.build(built)
    assert (RUNS, [path.name for path in hashed]) == ([], ["egg"])


@pytest.mark.skipif(
    isolation.isolation_obstacle() is not None, reason=str(isolation.isolation_obstacle())
)
def test_an_offline_build_takes_the_network_from_the_programs_of_a_stage(
    nest: RecipeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(job: Job) -> Bird:
        path = make_file(job.places.own / "bird", pipes.collect(LOOK).printed)
        return Bird(feathers=Artefact.of(path))

    monkeypatch.setattr(engine, "PIPELINE", (Stage(module("hatch", look)),))
    seen = []
    for offline in (False, True):
        made = engine.build(replace(nest, offline=offline, again="hatch")).of(Bird)
        seen.append(made.feathers.path.read_text("utf-8").strip())
    ours = str(Path("/proc/self/ns/net").readlink())
    assert [found == ours for found in seen] == [True, False]


def test_a_stage_that_keeps_its_network_offline_says_so(
    nest: RecipeJob, monkeypatch: pytest.MonkeyPatch, notes: list[str]
) -> None:
    monkeypatch.setattr(isolation, "isolation_obstacle", lambda: "this system has none")
    engine.build(replace(nest, offline=True))
    assert notes == ["Programs of this stage have a network: this system has none"] * 2


def test_what_is_being_built_cannot_be_cleaned(built: RecipeJob) -> None:
    with file_lock.locked(built.places.lock, "a build"), fails(HostError, os.getpid()):
        engine.clean(built)
    assert reasons(built) == ["", ""]
    engine.clean(built)
    assert reasons(built)[0] == "no earlier result"


def test_what_was_built_of_a_recipe_that_is_gone_is_cleaned(
    shell: CommandLine, tmp_path: Path
) -> None:
    made = tmp_path / "build_out/gone"
    make_file(made / "lock", "")
    for named in ("gone", "elsewhere/gone.toml"):
        make_file(made / "tree/WORKSPACE", "")
        shell.succeeds(f"invoke clean --recipe {named}")
        assert not (made / "tree").exists()
    shell.remedy("invoke clean --recipe vault", "invoke recipes")


def test_caches_that_another_recipe_uses_are_not_removed(nest: RecipeJob) -> None:
    nest.places.vault.mkdir(parents=True)
    with (
        file_lock.locked(nest.places.build_out / "other/lock", "another build"),
        pytest.raises(HostError, match="has to wait for process"),
    ):
        engine.clean(nest, caches=True)
    assert nest.places.vault.is_dir()
    engine.clean(nest, caches=True)
    assert not nest.places.vault.exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_stamp_that_cannot_be_written_is_the_hosts_fault(
    nest: RecipeJob, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number), "/some/stamp")

    monkeypatch.setattr(stamps, "write", refuse)
    with fails(HostError, "/some/stamp") as caught:
        engine.build(nest)
    assert caught.value.stage == "lay"


@pytest.mark.parametrize("text", ["x", "-3", "0", "1.5", "\u0663"])
def test_what_is_no_number_of_jobs_is_refused(text: str) -> None:
    with fails(RecipeError, "number"):
        engine.parse_jobs(text)


def test_no_jobs_leave_it_to_the_memory() -> None:
    assert (engine.parse_jobs(""), engine.parse_jobs("12")) == (None, 12)
