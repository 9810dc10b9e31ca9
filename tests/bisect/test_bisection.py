"""Bisection: the steps between two builds, the trials, and what an interrupted run leaves."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.making import Maker, make_file
from tests.nightly.fake import a_build
from tests.remedies.following import CommandLine, write_recipe
from tests.upstream import commit

from tfwright.bisect import bisection as bisecting
from tfwright.bisect import trial
from tfwright.bisect.bisection import Bisection, expected_trials, suspects
from tfwright.bisect.steps import BisectStep, steps_between
from tfwright.bisect.trial import Symptom, TrialAnswer, Trials
from tfwright.build import reproduce
from tfwright.documents import host_file, nightly, recipe
from tfwright.documents.host_file import HostFile
from tfwright.errors import Evidence, HostError, ToolError, WheelError
from tfwright.nightly import builds
from tfwright.nightly import state as states
from tfwright.nightly.builds import CommitLine, KeptInputs, NightlyBuild
from tfwright.pipeline import engine
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Verdict
from tfwright.pipeline.stage import Artefact, Results
from tfwright.smoke import smoking
from tfwright.smoke.run import TrialOutcome
from tfwright.smoke.smoking import SmokeReport
from tfwright.tools.process.file_lock import LockHeldError

PATCH = "demo/0001-matrix-power-zero-is-the-identity.patch"
HEADER = "demo/nccl.h"
COMMITS = [f"{number:040x}" for number in range(1, 8)]
Changed = Callable[..., KeptInputs]


@pytest.fixture
def changed(tmp_path: Path) -> Changed:
    """Return a maker of the demo's inputs with some of [source] changed, in a folder of its own."""
    base = recipe.read("demo")

    def make(
        name: str, lock: str = "", texts: tuple[str, ...] = (), **source: object
    ) -> KeptInputs:
        folder = tmp_path / name
        for patch in (PATCH, HEADER):
            target = folder / "patches" / patch
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(recipe.PATCHES / patch, target)
        for text in texts:
            make_file(folder / "patches" / f"{text}.patch", f"{name} {text}")
        table = base.source.changed(**source).located(folder)
        locked = folder / "lock" if lock else None
        if locked:
            locked.write_text(lock)
        return KeptInputs(base.changed(source=table), locked)

    return make


def titles(steps: list[BisectStep]) -> list[str]:
    return [step.title for step in steps]


def test_each_table_patch_and_commit_is_a_step_of_its_own(tmp_path: Path, changed: Changed) -> None:
    good = changed("good", texts=("a", "b"), patches=("a.patch", "b.patch", PATCH))
    bad = changed("bad", texts=("a", "c"), patches=("a.patch", "c.patch", PATCH))
    nccl = bad.recipe.nccl.changed(rebuild=False)
    bad = KeptInputs(bad.recipe.changed(nccl=nccl))
    commits = [CommitLine(commit=COMMITS[0], subject="Begin")]
    steps = list(steps_between(good, bad, commits, tmp_path / "steps"))
    assert titles(steps) == [
        "the recipe's [nccl]",
        "patches/a.patch, whose content changed",
        "without patches/b.patch",
        "patches/c.patch",
        f"commit {COMMITS[0][:12]} Begin",
    ]
    first = steps[1].inputs.recipe.source
    assert first.file("a.patch").read_text() == "bad a"
    assert first.file("b.patch").read_text() == "good b"
    last = steps[-1].inputs.recipe.source
    assert last.patches == ("a.patch", "c.patch", PATCH)
    assert last.commit == COMMITS[0]


def test_a_changed_lock_file_is_the_last_step_and_the_others_go_without_one(
    tmp_path: Path, changed: Changed
) -> None:
    good, bad = (changed("good", lock="old"), changed("bad", lock="new", commit=COMMITS[0]))
    commits = [CommitLine(commit=COMMITS[0], subject="Begin")]
    steps = list(steps_between(good, bad, commits, tmp_path / "steps"))
    assert titles(steps)[-1] == "the lock file"
    assert [step.inputs.locked for step in steps] == [None, bad.locked]


def test_equal_inputs_have_no_step_between_them(tmp_path: Path, changed: Changed) -> None:
    good, bad = changed("good", lock="same"), changed("bad", lock="same")
    assert list(steps_between(good, bad, [], tmp_path / "steps")) == []


def test_a_build_keeps_its_patches_as_they_were(tmp_path: Path, changed: Changed) -> None:
    made = changed("now", lock="pins", texts=("a",), patches=("a.patch", PATCH))
    builds.keep_inputs(made, tmp_path / "build")
    made.recipe.source.file("a.patch").write_text("changed since")
    kept = builds.read_inputs(tmp_path / "build")
    assert kept is not None
    # Who verified a recipe decides nothing, and is not kept.
    without = {"verified"}
    assert kept.recipe.model_dump(exclude=without) == made.recipe.model_dump(exclude=without)
    assert kept.recipe.source.file("a.patch").read_text() == "now a"
    assert kept.locked is not None
    assert kept.locked.read_text() == "pins"


def test_a_build_without_a_lock_keeps_none(tmp_path: Path, changed: Changed) -> None:
    builds.keep_inputs(changed("now"), tmp_path / "build")
    kept = builds.read_inputs(tmp_path / "build")
    assert kept is not None
    assert kept.locked is None


def test_a_build_without_inputs_is_no_error(tmp_path: Path) -> None:
    assert builds.read_inputs(tmp_path) is None


Build = Callable[[RecipeJob], Results]
Building = Callable[[Build], None]


def failed(stage: str, what: str = "it failed", log: Path | None = None) -> ToolError:
    """Return the error of a stage."""
    fault = ToolError(what, remedy="x", evidence=Evidence(log=log))
    fault.stage = stage
    return fault


@pytest.fixture
def building(monkeypatch: pytest.MonkeyPatch) -> Building:
    """Return what lets the trials build in a way of the test."""
    return lambda build: monkeypatch.setattr(engine, "build", build)


class FakeEngine:
    """Fails in `compile` from one commit on."""

    def __init__(self, culprit: int) -> None:
        self.culprit = culprit
        self.built: list[str] = []

    def build(self, request: RecipeJob) -> Results:
        """Fail as the real engine does."""
        commit = request.recipe.source.commit
        self.built.append(commit)
        if commit in COMMITS[self.culprit :]:
            raise failed("compile", "the compiler found an error")
        return Results()


@pytest.fixture
def wanted(tmp_path: Path, changed: Changed, monkeypatch: pytest.MonkeyPatch) -> Bisection:
    """Return a bisection over seven commits."""
    host = make_file(tmp_path / "host.toml", f'build_out = "{tmp_path}/out"\n')
    monkeypatch.setenv("TFWRIGHT_HOST_FILE", str(host))
    monkeypatch.setattr(
        "tfwright.nightly.targets.fingerprint", lambda job: job.recipe.source.commit
    )
    good, bad = changed("good"), changed("bad", commit=COMMITS[-1])
    commits = [CommitLine(commit=commit, subject="Note") for commit in COMMITS]
    steps = tuple(steps_between(good, bad, commits, tmp_path / "steps"))
    build = a_build(id="2026-01-01-demo-1")
    return Bisection(build, build, good, steps, Symptom("compile"), {})


def run(wanted: Bisection) -> bisecting.BisectOutcome:
    return bisecting.bisect(wanted, lambda *_: None)


@pytest.mark.parametrize("culprit", [0, 3, 6])
def test_the_commit_that_broke_the_compiler_is_named(
    culprit: int, wanted: Bisection, building: Building
) -> None:
    building(FakeEngine(culprit).build)
    outcome = run(wanted)
    assert outcome.suspects[-1].commit == COMMITS[culprit]
    assert outcome.result.line == "the compiler found an error"


def test_what_passes_now_is_not_blamed_on_the_last_commit(
    wanted: Bisection, building: Building
) -> None:
    building(FakeEngine(len(COMMITS)).build)
    outcome = run(wanted)
    assert not outcome.suspects
    assert outcome.result.answer == "good"


def test_an_interrupted_run_repeats_no_trial(wanted: Bisection, building: Building) -> None:
    fake = FakeEngine(5)

    def cut_off(request: RecipeJob) -> Results:
        if len(fake.built) == 2:
            raise KeyboardInterrupt
        return fake.build(request)

    building(cut_off)
    with pytest.raises(KeyboardInterrupt):
        run(wanted)
    building(fake.build)
    outcome = run(wanted)
    assert outcome.remembered == 2
    assert len(fake.built) == len(set(fake.built))
    assert outcome.suspects[-1].commit == COMMITS[5]


def test_a_host_that_cannot_build_ends_the_run_without_an_answer(
    wanted: Bisection, building: Building
) -> None:
    building(Mock(side_effect=HostError("the disk is full", remedy="Free some space.")))
    with pytest.raises(HostError):
        run(wanted)


def test_trials_take_what_builds_left_in_the_cache(tmp_path: Path) -> None:
    host = HostFile(build_out=tmp_path)
    own = reproduce.relocate(host, trial.FOLDER)
    assert (own.cache_directory, own.cache_secret) == (host.cache_directory, host.cache_secret)
    link = own.build_out / "vault"
    before = link.lstat()
    # Another process builds through the link.
    reproduce.relocate(host, trial.FOLDER)
    assert link.lstat() == before


def test_a_damaged_journal_costs_only_the_trials(wanted: Bisection, building: Building) -> None:
    building(FakeEngine(3).build)
    run(wanted)
    (journal,) = (host_file.read().build_out / trial.FOLDER).glob("*.trials.json")
    journal.write_text('{"half')
    assert run(wanted).remembered == 0


def test_a_good_build_that_fails_now_points_at_the_host(
    wanted: Bisection, building: Building
) -> None:
    building(Mock(side_effect=failed("compile")))
    outcome = run(wanted)
    assert (outcome.suspects, outcome.ran) == ((), 1)
    # Somebody mended the host since.
    building(FakeEngine(3).build)
    assert run(wanted).suspects[-1].commit == COMMITS[3]


def test_a_second_bisection_leaves_the_trials_of_the_first_alone(
    wanted: Bisection, building: Building
) -> None:
    fake, seen = FakeEngine(3), list[bool]()

    def build(request: RecipeJob) -> Results:
        tree = make_file(request.places.tree / "file", "")
        if not seen:
            building(fake.build)
            with pytest.raises(LockHeldError):
                run(wanted)
            building(build)
            seen.append(tree.exists())
        return fake.build(request)

    building(build)
    assert run(wanted).suspects[-1].commit == COMMITS[3]
    assert seen == [True]


def test_a_lock_file_that_broke_is_named(
    tmp_path: Path,
    wanted: Bisection,
    changed: Changed,
    building: Building,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good, bad = changed("good", lock="old"), changed("bad", lock="new")
    steps = tuple(steps_between(good, bad, [], tmp_path / "steps"))

    def build(request: RecipeJob) -> Results:
        if request.locked == bad.locked:
            raise failed("compile")
        return Results()

    building(build)
    monkeypatch.setattr("tfwright.nightly.targets.fingerprint", lambda job: str(job.locked))
    outcome = run(replace(wanted, start=good, steps=steps))
    assert outcome.suspects[-1].title == "the lock file"
    assert outcome.ran == 2


def test_the_good_build_is_the_one_before_whatever_the_clock_said(tmp_path: Path) -> None:
    fates = [("good", "2026", "built"), ("bad", "2020", "failed"), ("new", "2027", "built")]
    with states.open_state(tmp_path) as state:
        for name, year, result in fates:
            started = f"{year}-01-01T00:00:00Z"
            state.add_build(a_build(id=name, started=started, result=result))
        first, last = bisecting._first_and_last(state, "demo", "", "")
    assert (first.id, last.id) == ("good", "bad")


# From the typed command to its page, with a real night's directory, git and stages.

SETUP = "tensorflow/tools/pip_package/setup.py"


class FailingNight:
    """The directory of a night: its recipe was good at one commit, and failed later."""

    def __init__(self, folder: Path, nightly_file: Path) -> None:
        self.folder = folder
        self.upstream = folder / "upstream"
        good = self.commit("1.12.0", "Begin")
        self.recipe = write_recipe(folder / "small.toml", self.upstream, good)
        nightly_file.write_text(
            f'directory = "{folder}/host"\n[[recipe]]\nname = "{self.recipe}"\n', "utf-8"
        )
        (self.target,) = nightly.targets(nightly.read())
        self.good = good
        self.add("built", good)

    def commit(self, version: str, subject: str) -> str:
        """Let the tree be of a release; return the commit."""
        return commit(self.upstream, {SETUP: f"_VERSION = '{version}'\n"}, subject)

    def add(self, result: str, pinned: str, **more: object) -> NightlyBuild:
        """Add a build of this night with its inputs; return it."""
        name, named = f"2026-01-01-{result}", self.target
        build = a_build(
            id=name, target=named.name, recipe=named.recipe, result=result, commit=pinned, **more
        )
        with states.open_state(self.folder / "host") as state:
            state.add_build(build)
        home = self.folder / "host/site/builds" / build.id
        made_from = recipe.read(str(self.recipe))
        source = made_from.source.changed(commit=pinned)
        builds.keep_inputs(KeptInputs(made_from.changed(source=source)), home)
        return build

    def fail(self, pinned: str) -> NightlyBuild:
        """Let the newest build fail in fetch; return it."""
        broken = {"stage": "fetch", "line": "another release"}
        return self.add("failed", pinned, broken=broken)


@pytest.fixture
def failing_night(shell: CommandLine, nightly_file: Path, tmp_path: Path) -> FailingNight:
    """Return the directory of a night that knows its recipe, and one good build."""
    assert shell
    return FailingNight(tmp_path, nightly_file)


@pytest.mark.medium
def test_the_commit_with_which_a_recipe_began_to_fail_is_named(
    shell: CommandLine, failing_night: FailingNight, capsys: pytest.CaptureFixture[str]
) -> None:
    versions = {"One": "1.12.0", "Two": "1.13.0", "Three": "1.13.0"}
    made = {
        subject: failing_night.commit(version, subject) for subject, version in versions.items()
    }
    failing_night.fail(made["Three"])
    shell.succeeds(f"invoke bisect {failing_night.target.name}")
    said = capsys.readouterr()
    assert f"Broken by commit {made['Two'][:12]} Two" in said.out
    assert "3 changes in between" in said.err


@pytest.mark.medium
def test_a_night_bisects_until_its_time_is_over_and_the_next_one_goes_on(
    failing_night: FailingNight,
) -> None:
    made = [failing_night.commit("1.13.0", subject) for subject in ("One", "Two", "Three")]
    failed = failing_night.fail(made[-1])
    notes: list[str] = []
    # Each time ends after one trial: of the good build, then of each commit.
    answers = [bisecting.find_nightly_culprit(failed, -1, notes.append) for _ in range(2)]
    assert answers == [None, None]
    found = bisecting.find_nightly_culprit(failed, 100, notes.append)
    assert found
    assert found.commit == made[0]
    assert found.sentence.startswith(f"Broken by commit {made[0][:12]} One, by ")
    assert notes[0].endswith("as it was")


@pytest.mark.medium
def test_a_night_says_why_nothing_could_be_bisected(failing_night: FailingNight) -> None:
    found = bisecting.find_nightly_culprit(failing_night.fail(failing_night.good), 100, print)
    assert found
    assert found.sentence.startswith("No bisection was possible: Nothing that decides the wheel")


@pytest.mark.medium
def test_builds_between_which_nothing_changed_have_nothing_to_try(
    shell: CommandLine, failing_night: FailingNight
) -> None:
    failing_night.fail(failing_night.good)
    remedy = shell.remedy(f"invoke bisect {failing_night.target.name}")
    assert shell.fault
    assert "2026-01-01-built and 2026-01-01-failed" in shell.fault.what
    assert f"'invoke nightly --recipe {failing_night.target.name} --now'" in remedy


# What a night does to a wheel after the pipeline, a trial does as well.


@pytest.fixture
def publishing(wanted: Bisection, make_wheel: Maker, building: Building) -> Callable[..., None]:
    """Return a function that lets each trial make a small wheel, sound or damaged."""
    assert wanted

    def publish(*, damaged: bool = False) -> None:
        path = make_wheel()
        if damaged:
            path.write_bytes(path.read_bytes().replace(b"small", b"smell"))
        wheel = Artefact.of(path)
        made = Results({Verdict: Verdict(wheel=wheel, checks=())})
        building(lambda _: made)

    return publish


@pytest.mark.parametrize(
    ("stage", "damaged", "answer"),
    [
        ("inspect", True, "bad"),
        ("inspect", False, "good"),
        # What cannot be read cannot be tried either, which is another fault.
        ("smoke", True, "skip"),
    ],
)
def test_a_wheel_that_the_night_refused_is_read_again(
    wanted: Bisection, publishing: Callable[..., None], stage: str, answer: str, *, damaged: bool
) -> None:
    publishing(damaged=damaged)
    trials = Trials("demo", Symptom(stage))
    assert trials(wanted.start).answer == answer


@pytest.mark.parametrize(
    ("failed", "answer"),
    [((), "good"), (("imports",), "bad"), (("matmul",), "good"), (("install",), "good")],
)
def test_only_the_programs_that_failed_in_the_night_decide(
    wanted: Bisection,
    publishing: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    failed: tuple[str, ...],
    answer: str,
) -> None:
    outcomes = tuple(TrialOutcome(name, "failed", "no such symbol") for name in failed)
    report = SmokeReport("a.whl", "", 1, "small", "3.11.0", "x86_64", "", (), (), outcomes)
    monkeypatch.setattr(smoking, "smoke", lambda *_: report)
    publishing()
    found = Trials("demo", symptom_of("imports"))(wanted.start)
    assert found.answer == answer
    if answer == "bad":
        assert found.line == "imports: no such symbol"


@pytest.mark.parametrize(("program", "answer"), [("install", "bad"), ("imports", "skip")])
def test_a_wheel_that_pip_refuses_fails_as_the_night_did_only_if_it_was_refused_there(
    wanted: Bisection,
    publishing: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    answer: str,
) -> None:
    def refuse(*_: object) -> None:
        raise WheelError("it is not a supported wheel", remedy="x")

    monkeypatch.setattr(smoking, "smoke", refuse)
    publishing()
    found = Trials("demo", symptom_of(program))(wanted.start)
    assert (found.answer, found.line) == (answer, "it is not a supported wheel")


def symptom_of(program: str) -> Symptom:
    """Return how a build failed of which one smoke program failed."""
    lines = (
        {"program": program, "status": "failed", "detail": "x"},
        {"program": "done", "status": "passed"},
    )
    return Symptom.of(a_build(smoke=lines))


MISSING = "x.cc:1:10: fatal error: no/such/header.h: No such file or directory"


@pytest.mark.medium
@pytest.mark.parametrize(
    ("logged", "line"),
    [(MISSING, MISSING), ("INFO: all is well", "it failed")],
    ids=["a log with an error", "a log without one"],
)
def test_a_trial_that_fails_otherwise_says_nothing_of_the_change(
    wanted: Bisection, building: Building, tmp_path: Path, logged: str, line: str
) -> None:
    log = make_file(tmp_path / "source.log", f"{logged}\n")

    building(Mock(side_effect=failed("source", log=log)))
    found = Trials("demo", Symptom("compile"))(wanted.start)
    assert (found.answer, found.stage) == ("skip", "source")
    assert found.line == line


@pytest.mark.parametrize("count", [1, 2, 3, 10, 100])
def test_the_first_bad_step_is_found_wherever_it_is(count: int) -> None:
    for culprit in range(count):
        tried: list[int] = []

        def judged(step: int, culprit: int = culprit) -> TrialAnswer:
            tried.append(step)  # noqa: B023 called within the loop
            return "bad" if step >= culprit else "good"

        assert suspects(range(count), judged) == (culprit,)
        assert len(tried) <= expected_trials(count) + 1


def test_steps_that_cannot_be_tried_leave_more_than_one_suspect() -> None:
    def tried(step: int) -> TrialAnswer:
        if step in {4, 5}:
            return "skip"
        return "bad" if step >= 5 else "good"

    found = suspects(range(10), tried)
    assert found == (4, 5, 6)
    assert found[-1] == 6


def test_a_single_step_needs_no_trial() -> None:
    asked: list[str] = []

    def tried(step: str) -> TrialAnswer:
        asked.append(step)
        return "good"

    found = suspects(["only"], tried)
    assert (found[-1], asked) == ("only", [])
