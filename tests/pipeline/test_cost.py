"""What a build took."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.making import Read, make_file

from tfwright.cost import command as page
from tfwright.pipeline import cost as costs
from tfwright.pipeline import stamps
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Built
from tfwright.pipeline.stages import PIPELINE
from tfwright.pipeline.stamps import Took
from tfwright.tools.bazel.client import Spent

COMPILE = next(stage for stage in PIPELINE if stage.name == "compile")


def profiled(job: RecipeJob, **actions: float) -> None:
    """Write a profile as Bazel does, cut off as by a kill."""
    events = [
        {
            "cat": "action processing",
            "name": f"Compiling {name}.cc",
            "ph": "X",
            "ts": 5,
            "dur": seconds * 1e6,
        }
        for name, seconds in actions.items()
    ]
    other = {"cat": "general information", "name": "x", "ph": "X", "dur": 9e9}
    lines = ",\n  ".join(json.dumps(event) for event in [other, *events])
    make_file(job.places.profile, f'[\n  {lines},\n  {{"cat":"action pro')


@pytest.fixture
def built(job: RecipeJob) -> RecipeJob:
    """Return a job whose compile needed two runs of Bazel."""
    profiled(job, small=1.0, large=60.0)
    costs.record_run(job, Spent(100.0, 180.0, 2**30, 3 * 2**30))
    profiled(job, large=50.0, last=70.0)
    costs.record_run(job, Spent(49.0, 90.0, 2**29, 2**30))
    stamps.write(job, COMPILE, {}, Built(target="//a", outputs=(), actions=3), Took(50.0, 2.0))
    return job


def test_runs_are_summed_and_an_action_that_was_repeated_is_named_once(built: RecipeJob) -> None:
    cost = costs.read_cost(built, PIPELINE)
    assert [run.spent.seconds for run in cost.bazel] == [100.0, 49.0]
    assert [(action.name, action.seconds) for action in cost.slowest] == [
        ("Compiling last.cc", 70.0),
        ("Compiling large.cc", 60.0),
        ("Compiling small.cc", 1.0),
    ]


@pytest.mark.parametrize(
    "line", [b'{"spent": {"sec', b"\xff\xfe", b"[" * 200_000, b"{}", b"null", b""]
)
def test_a_damaged_line_of_a_run_makes_the_table_shorter_and_no_more(
    line: bytes, built: RecipeJob
) -> None:
    kept = built.places.runs
    kept.write_bytes(line + b"\n" + kept.read_bytes())
    cost = costs.read_cost(built, PIPELINE)
    assert [run.spent.seconds for run in cost.bazel] == [100.0, 49.0]


def test_a_stamp_that_is_a_named_pipe_counts_as_none(built: RecipeJob) -> None:
    (stamp,) = (built.places.own / "stamps").iterdir()
    stamp.unlink()
    os.mkfifo(stamp)
    assert costs.read_cost(built, PIPELINE).stages == ()


def test_events_of_other_types_than_bazels_are_left_out(built: RecipeJob) -> None:
    events = [
        {"cat": "action processing", "name": 5, "dur": 1},
        {"cat": "action processing", "name": "a", "dur": "1"},
        {"cat": "action processing", "dur": 1},
    ]
    lines = ",\n".join(json.dumps(event) for event in events)
    built.places.profile.write_text(f"[\n{lines}\n]\n", "utf-8")
    costs.record_run(built, Spent(1.0, 1.0, 1, 1))
    assert costs.read_cost(built, PIPELINE).bazel[-1].slowest == ()


def test_as_many_actions_are_named_as_there_is_room_for_although_some_have_twins(
    job: RecipeJob,
) -> None:
    profiled(job, **{f"action{number}": 100.0 - number for number in range(costs.SLOWEST + 5)})
    path = job.places.profile
    twins = [line for line in path.read_text("utf-8").splitlines() if "action processing" in line]
    path.write_text("\n".join([path.read_text("utf-8"), *twins]), "utf-8")
    costs.record_run(job, Spent(1.0, 1.0, 1, 1))
    assert len(costs.read_cost(job, PIPELINE).slowest) == costs.SLOWEST


def test_people_read_what_bazel_took_and_what_tfwright_added(built: RecipeJob, out: Read) -> None:
    page.show(costs.read_cost(built, PIPELINE))
    said = out()
    assert "compile  50.0 s           2.0 s" in said
    assert (
        "Bazel, 2 runs\n"
        "  2 min 29 s, 4 min 30 s of processor time\n"
        "  memory: 1.00 GiB for the largest action, 3.00 GiB for all at once\n"
    ) in said
    assert "tfwright's own part of the last run: 1.0 s (2.0%), 2.0 s of processor time" in said


def test_a_recipe_that_was_never_built_has_cost_nothing(job: RecipeJob, out: Read) -> None:
    cost = costs.read_cost(job, PIPELINE)
    assert (cost.stages, cost.bazel, set(cost.disk.values())) == ((), (), {0})
    page.show(cost)
    assert "has not been built on this host" in out()


def test_a_build_whose_bazel_has_not_ended_counts_no_runs(built: RecipeJob, out: Read) -> None:
    cost = replace(costs.read_cost(built, PIPELINE), bazel=())
    page.show(cost)
    said = out()
    assert "compile" in said
    assert "Bazel" not in said


def test_a_file_with_two_names_takes_its_room_once_and_a_link_none_of_its_targets(
    tmp_path: Path,
) -> None:
    make_file(tmp_path / "tree/one", os.urandom(1 << 20))
    alone = costs.size(tmp_path / "tree")
    (tmp_path / "tree/two").hardlink_to(tmp_path / "tree/one")
    (tmp_path / "tree/three").symlink_to(tmp_path / "tree/one")
    assert 1 << 20 <= alone <= costs.size(tmp_path / "tree") < 3 << 19
