"""Bisection: the steps between two builds, the trials, and what an interrupted run leaves."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tfwright.commands import bisect as bisecting
from tfwright.commands.bisect import Bisection, HostChange, trial
from tfwright.commands.bisect.steps import BisectStep, steps_between
from tfwright.commands.bisect.trial import Symptom
from tfwright.documents import recipe
from tfwright.errors import HostError, ToolError
from tfwright.nightly import inputs
from tfwright.nightly import state as states
from tfwright.nightly.builds import CommitLine, NightlyBuild
from tfwright.nightly.inputs import KeptInputs
from tfwright.pipeline.job import BuildRequest
from tfwright.terminal import bisect as page

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
            extra = folder / "patches" / f"{text}.patch"
            extra.write_text(f"{name} {text}")
        table = base.source.model_copy(update=source).located(folder)
        locked = folder / "lock" if lock else None
        if locked:
            locked.write_text(lock)
        return KeptInputs(base.model_copy(update={"source": table}), locked)

    return make


def said(steps: list[BisectStep]) -> list[str]:
    return [step.said for step in steps]


def test_each_table_patch_and_commit_is_a_step_of_its_own(
    tmp_path: Path, changed: Changed
) -> None:
    good = changed(
        "good", texts=("a", "b"), patches=("a.patch", "b.patch", PATCH)
    )
    bad = changed("bad", texts=("a", "c"), patches=("a.patch", "c.patch", PATCH))
    nccl = bad.recipe.nccl.model_copy(update={"rebuild": False})
    bad = KeptInputs(bad.recipe.model_copy(update={"nccl": nccl}))
    commits = [CommitLine(commit=COMMITS[0], subject="Begin")]
    steps = list(steps_between(good, bad, commits, tmp_path / "steps"))
    assert said(steps) == [
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
    good, bad = (
        changed("good", lock="old"),
        changed("bad", lock="new", commit=COMMITS[0]),
    )
    commits = [CommitLine(commit=COMMITS[0], subject="Begin")]
    steps = list(steps_between(good, bad, commits, tmp_path / "steps"))
    assert said(steps)[-1] == "the lock file"
    assert [step.inputs.locked for step in steps] == [None, bad.locked]


def test_equal_inputs_have_no_step_between_them(
    tmp_path: Path, changed: Changed
) -> None:
    good, bad = changed("good", lock="same"), changed("bad", lock="same")
    assert list(steps_between(good, bad, [], tmp_path / "steps")) == []


def test_a_build_keeps_its_patches_as_they_were(
    tmp_path: Path, changed: Changed
) -> None:
    made = changed("now", lock="pins", texts=("a",), patches=("a.patch", PATCH))
    inputs.keep(made, tmp_path / "build")
    made.recipe.source.file("a.patch").write_text("changed since")
    kept = inputs.read(tmp_path / "build")
    assert kept is not None
    # Who verified a recipe decides nothing, and is not kept.
    without = {"verified"}
    assert kept.recipe.model_dump(exclude=without) == made.recipe.model_dump(
        exclude=without
    )
    assert kept.recipe.source.file("a.patch").read_text() == "now a"
    assert kept.locked is not None
    assert kept.locked.read_text() == "pins"


def test_a_build_without_a_lock_keeps_none(
    tmp_path: Path, changed: Changed
) -> None:
    inputs.keep(changed("now"), tmp_path / "build")
    kept = inputs.read(tmp_path / "build")
    assert kept is not None
    assert kept.locked is None


def test_a_build_without_inputs_is_no_error(tmp_path: Path) -> None:
    assert inputs.read(tmp_path) is None


class FakeEngine:
    """Fails in `compile` from one commit on."""

    def __init__(self, culprit: int) -> None:
        self.culprit = culprit
        self.built: list[str] = []

    def build(self, request: BuildRequest) -> None:
        """Fail as the real engine does."""
        commit = request.recipe.source.commit
        self.built.append(commit)
        if commit in COMMITS[self.culprit :]:
            fault = ToolError("the compiler found an error", remedy="Correct it.")
            fault.stage = "compile"
            raise fault


@pytest.fixture
def wanted(
    tmp_path: Path, changed: Changed, monkeypatch: pytest.MonkeyPatch
) -> Bisection:
    """Return a bisection over seven commits."""
    host = tmp_path / "host.toml"
    host.write_text(f'build_out = "{tmp_path}/out"\n')
    monkeypatch.setenv("TFWRIGHT_HOST_FILE", str(host))
    monkeypatch.setattr(
        "tfwright.commands.nightly.targets.fingerprint",
        lambda job: job.recipe.source.commit,
    )
    good, bad = changed("good"), changed("bad", commit=COMMITS[-1])
    commits = [CommitLine(commit=commit, subject="Note") for commit in COMMITS]
    steps = tuple(steps_between(good, bad, commits, tmp_path / "steps"))
    build = NightlyBuild.model_validate(
        {
            "id": "2026-01-01-demo-1",
            "target": "demo",
            "recipe": "demo",
            "started": "2026-01-01T02:00:00Z",
            "seconds": 1.0,
            "result": "failed",
        }
    )
    return Bisection(build, build, good, steps, Symptom("compile"), ())


def run(wanted: Bisection) -> bisecting.BisectOutcome:
    return bisecting.bisect(wanted, lambda *_: None)


@pytest.mark.parametrize("culprit", [0, 3, 6])
def test_the_commit_that_broke_the_compiler_is_named(
    culprit: int, wanted: Bisection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "engine", FakeEngine(culprit))
    outcome = run(wanted)
    assert outcome.culprits is not None
    assert outcome.culprits.first_bad.commit == COMMITS[culprit]
    assert outcome.result.line == "the compiler found an error"


def test_what_passes_now_is_not_blamed_on_the_last_commit(
    wanted: Bisection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "engine", FakeEngine(len(COMMITS)))
    outcome = run(wanted)
    assert outcome.culprits is None
    assert outcome.start.answer == "good"


def test_an_interrupted_run_repeats_no_trial(
    wanted: Bisection, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = FakeEngine(5)

    def cut_off(request: BuildRequest) -> None:
        if len(engine.built) == 2:
            raise KeyboardInterrupt
        engine.build(request)

    monkeypatch.setattr(
        trial, "engine", type("Cut", (), {"build": staticmethod(cut_off)})
    )
    with pytest.raises(KeyboardInterrupt):
        run(wanted)
    monkeypatch.setattr(trial, "engine", engine)
    outcome = run(wanted)
    assert outcome.remembered == 2
    assert len(engine.built) == len(set(engine.built))
    assert outcome.culprits is not None
    assert outcome.culprits.first_bad.commit == COMMITS[5]


def test_a_host_that_cannot_build_ends_the_run_without_an_answer(
    wanted: Bisection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(request: BuildRequest) -> None:
        del request
        raise HostError("the disk is full", remedy="Free some space.")

    monkeypatch.setattr(
        trial, "engine", type("Full", (), {"build": staticmethod(full)})
    )
    with pytest.raises(HostError):
        run(wanted)


def test_a_damaged_journal_costs_only_the_trials(
    wanted: Bisection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "engine", FakeEngine(3))
    run(wanted)
    (journal,) = Path(trial._host_file().build_out).glob("*.trials.json")
    journal.write_text('{"half')
    assert run(wanted).remembered == 0


def test_a_good_build_that_fails_now_points_at_the_host(
    wanted: Bisection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(request: BuildRequest) -> None:
        del request
        fault = ToolError(
            "the compiler does not know -std=c++11", remedy="Correct it."
        )
        fault.stage = "compile"
        raise fault

    monkeypatch.setattr(
        trial, "engine", type("Broken", (), {"build": staticmethod(broken)})
    )
    changed_host = replace(
        wanted, host_changes=(HostChange("the compiler", "gcc 12", "gcc 4"),)
    )
    outcome = run(changed_host)
    page.show_outcome(changed_host, outcome, as_json=False)
    printed = capsys.readouterr().out
    assert outcome.culprits is None
    assert outcome.ran == 1
    assert "the compiler, from gcc 12 to gcc 4" in printed


def test_a_lock_file_that_broke_is_shown_with_how_to_read_it(
    tmp_path: Path,
    wanted: Bisection,
    changed: Changed,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    good, bad = changed("good", lock="old"), changed("bad", lock="new")
    steps = tuple(steps_between(good, bad, [], tmp_path / "steps"))
    locked = replace(wanted, start=good, steps=steps, home=tmp_path / "builds")

    def build(request: BuildRequest) -> None:
        if request.locked == bad.locked:
            fault = ToolError("the lock does not fit", remedy="Lock it again.")
            fault.stage = "compile"
            raise fault

    monkeypatch.setattr(
        trial, "engine", type("Locked", (), {"build": staticmethod(build)})
    )
    monkeypatch.setattr(
        "tfwright.commands.nightly.targets.fingerprint",
        lambda job: str(job.locked),
    )
    page.show_start(locked)
    outcome = run(locked)
    page.show_outcome(locked, outcome, as_json=False)
    printed, said = capsys.readouterr()
    assert "1 change in between: about 2 trials" in said + printed
    assert outcome.ran == 2
    assert "Broken by the lock file" in printed
    assert f"diff -r {tmp_path}/builds/2026-01-01-demo-1/inputs" in printed


def test_a_host_that_changed_alone_takes_one_trial(
    wanted: Bisection, capsys: pytest.CaptureFixture[str]
) -> None:
    change = HostChange("the compiler", "gcc 12", "gcc 4")
    page.show_start(replace(wanted, steps=(), host_changes=(change,)))
    printed, said = capsys.readouterr()
    assert (
        "The recipe did not change: one trial, up to compile." in said + printed
    )


def test_the_good_build_is_the_one_before_whatever_the_clock_said(
    tmp_path: Path,
) -> None:
    base = {"target": "a", "recipe": "a", "seconds": 1.0}
    fates = [
        ("good", "2026", "built"),
        ("bad", "2020", "failed"),
        ("new", "2027", "built"),
    ]
    with states.opened(tmp_path) as state:
        for name, year, result in fates:
            values = {
                "id": name,
                "started": f"{year}-01-01T00:00:00Z",
                "result": result,
            }
            build = NightlyBuild.model_validate({**base, **values})
            state.add_build(build)
        first, last = bisecting._ends(state, "a", "", "")
    assert (first.id, last.id) == ("good", "bad")
