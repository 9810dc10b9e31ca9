"""The page of what a build by hand took."""

import gzip
import json
import shutil
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file

from tfwright.cost import account as pages
from tfwright.documents import recipe
from tfwright.documents.host_file import HostFile
from tfwright.errors import RecipeError
from tfwright.nightly import builds
from tfwright.nightly.builds import NightlyBuild
from tfwright.pipeline import cost
from tfwright.pipeline.job import RecipeJob
from tfwright.tools.bazel.client import Spent

SPENT = Spent(seconds=3.0, cpu=5.0, action=1, together=1)


@pytest.fixture
def job(tmp_path: Path) -> RecipeJob:
    request = RecipeJob(recipe=recipe.read("demo"), host_file=HostFile(build_out=tmp_path))
    request.places.logs.mkdir(parents=True)
    return request


def built(job: RecipeJob, **seconds: float) -> None:
    """Leave behind what a run of Bazel leaves."""
    lines = []
    for name, dur in seconds.items():
        event = {"cat": "action processing", "name": name, "ts": 0, "dur": dur * 1e6}
        lines.append(json.dumps(event))
    cost.profile(job).write_text("[\n" + ",\n".join(lines) + "\n]")
    cost.note(job, SPENT)


def test_a_page_shows_what_changed_against_the_build_before(job: RecipeJob, tmp_path: Path) -> None:
    built(job, kernel=1.0, link=2.0)
    built(job, kernel=9.0, link=2.0)
    page = pages.write(job, str(tmp_path / "page.html"), "previous")
    assert [(row.name, row.value) for row in page.changed] == [("kernel", "+8.0 s")]
    text = page.path.read_text()
    assert "kernel, 9.0 s, before 1.0 s" in text
    assert "<script" not in text


def test_a_profile_of_another_machine_can_be_compared_with(job: RecipeJob, tmp_path: Path) -> None:
    built(job, kernel=1.0)
    other = make_file(tmp_path / "other.json.gz", cost.profiles(job)[0].read_bytes())
    page = pages.write(job, "", str(other))
    assert page.changed == ()
    assert page.other == "other.json.gz"
    assert page.path.parent == job.places.logs


def test_a_run_without_actions_does_not_push_out_a_profile(job: RecipeJob) -> None:
    built(job, kernel=1.0)
    built(job)
    assert len(cost.profiles(job)) == 1


def test_the_oldest_profiles_go_first(job: RecipeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(cost.PROFILES + 3):
        monkeypatch.setattr("time.time_ns", lambda number=number: 10**18 + number * 10**9)
        built(job, kernel=float(number + 1))
    kept = cost.profiles(job)
    assert len(kept) == cost.PROFILES
    assert b'"dur": 13000000' in gzip.decompress(kept[-1].read_bytes())


@pytest.mark.parametrize("against", ["", "previous"])
def test_what_was_never_built_is_said_with_the_command_that_builds_it(
    against: str, job: RecipeJob
) -> None:
    with fails(RecipeError, "invoke build --recipe demo"):
        pages.write(job, "", against)
    built(job, kernel=1.0)
    with fails(RecipeError, job.name):
        pages.write(job, "", "previous")


def nightly_build(folder: Path, profile: str) -> Path:
    """Write the document of a nightly build; return its directory."""
    values = {
        "id": "2026-01-01-demo-1",
        "target": "demo",
        "recipe": "demo",
        "started": "2026-01-01T02:00:00Z",
        "seconds": 1.0,
        "result": "built",
        "profile": profile,
    }
    build = NightlyBuild.model_validate(values)
    folder.mkdir()
    (folder / builds.DOCUMENT).write_text(build.model_dump_json(), "utf-8")
    return folder


def test_a_nightly_build_can_be_compared_with_if_it_got_as_far_as_bazel(
    job: RecipeJob, tmp_path: Path
) -> None:
    built(job, kernel=1.0)
    built(job, kernel=3.0)
    night = nightly_build(tmp_path / "night", "compile.json.gz")
    with fails(RecipeError, "2026-01-01-demo-1"):
        pages.write(job, "", str(night))
    shutil.copy(cost.profiles(job)[0], night / "compile.json.gz")
    page = pages.write(job, "", str(night))
    assert page.other == "2026-01-01-demo-1"
    assert [row.value for row in page.changed] == ["+2.0 s"]
