"""The site as a whole: the night under way, past nights, groups, the matrix, plots."""

import datetime as dt
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.nightly.fake import host_with
from tests.nightly.test_pages import Checked

from tfwright.documents.nightly import Target
from tfwright.nightly import night
from tfwright.nightly import state as states
from tfwright.nightly.builds import Breakage, failure_digest
from tfwright.nightly.pages import charts, site, views
from tfwright.nightly.pages.views import TargetFacts
from tfwright.nightly.state import Culprit, KeptBuild, PastNight, WaitingBuild

NOW = dt.datetime(2026, 1, 1, 2, tzinfo=dt.UTC)


def test_the_first_page_says_in_a_night_what_runs_what_waits_and_when_it_ends(
    tmp_path: Path,
) -> None:
    host = host_with(tmp_path, "a", "b")
    seen: list[str] = []

    def look() -> None:
        seen.append(host.page())
        seen.append(host.page("latest.json"))

    host.fake.meanwhile = look
    night.run(host)
    page, latest = seen
    Checked(page)
    assert "1 running, 1 waiting" in page
    # Both count as an hour until they were built once.
    assert json.loads(latest)["night"] == {
        "began": "2026-01-01T02:00:00+00:00",
        "cut-off": False,
        "expected-end": "2026-01-01T04:00:00+00:00",
        "running": ["a"],
        "waiting": ["b"],
    }
    assert "under way" not in host.page()
    assert "night" not in json.loads(host.page("latest.json"))


def test_builds_side_by_side_end_as_the_machines_become_free() -> None:
    def build(name: str, seconds: float, *, runs: bool) -> WaitingBuild:
        return WaitingBuild(name, "changed", seconds, NOW if runs else None)

    queue = [
        build("a", 100, runs=True),
        build("b", 300, runs=True),
        build("c", 50, runs=False),
        build("d", 500, runs=False),
    ]
    now = NOW + dt.timedelta(seconds=120)
    ends = site.tonight(PastNight(1, NOW, None), queue, now).ends
    # "a" is late, and may end at any time.
    after = {name: (end - NOW).total_seconds() for name, end in ends.items()}
    assert after == {"a": 120, "b": 300, "c": 170, "d": 670}


def test_each_night_has_a_page_and_says_what_changed_in_it(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", "b")
    night.run(host)
    builder = host.fake
    builder.clock.next_night()
    builder.parts["a"] = {"recipe": "2"}
    builder.broken["a"] = Breakage(stage="compile", line="error: broken")
    night.run(host)
    text = host.page("nights/2.html")
    Checked(text)
    assert "before: good" in text
    assert "1 unchanged" in text
    assert "error: broken" in text
    assert "2.html" in Checked(host.page("nights/index.html")).links


def test_nights_in_a_row_without_a_change_are_one_line(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a")
    host.pass_nights(4)
    assert "3 nights, 2026-01-02 to 2026-01-04" in host.page("recipes/a.html")


def test_a_change_that_a_bisection_found_is_on_the_pages_until_the_failure_changes(
    tmp_path: Path,
) -> None:
    host = host_with(tmp_path, "a")
    builder = host.fake
    builder.broken["a"] = Breakage(stage="compile", line="error: broken")
    night.run(host)
    found = Culprit(failure_digest("compile: error: broken"), "Broken by commit c0ffee <b>")
    with states.open_state(tmp_path) as state:
        state.keep_culprit("a", found, builder.clock())
    for line, shown in (("error: broken", True), ("error: another", False)):
        builder.broken["a"] = Breakage(stage="compile", line=line)
        builder.clock.next_night()
        night.run(host)
        for page in ("index.html", "recipes/a.html"):
            said = "<strong>Broken by commit c0ffee &lt;b&gt;</strong>" in host.page(page)
            assert said is shown
        entry = json.loads(host.page("latest.json"))["targets"][0]
        assert ("culprit" in entry) is shown


@pytest.mark.medium
def test_a_recipe_for_any_python_is_shown_with_the_one_that_its_wheel_is_for() -> None:
    here = "{}.{}".format(*sys.version_info)
    assert views.facts_of(Target(name="demo", recipe="demo")).python == here


def test_many_recipes_are_grouped_by_release_and_found_in_the_matrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"r{number}" for number in range(14)]
    facts = {
        name: TargetFacts("", "2.9" if number % 2 else "2.10", f"3.{9 + number % 3}", "sm_90")
        for number, name in enumerate(names)
    }
    monkeypatch.setattr(views, "facts_of", lambda target: facts[target.name])
    host = host_with(tmp_path, *names)
    host.fake.broken["r0"] = Breakage(stage="compile", line="x")
    night.run(host)
    text = host.page()
    Checked(text)
    headings = ("Without a current wheel", "TensorFlow 2.10", "TensorFlow 2.9")
    places = [text.index(f"<h2>{heading} <") for heading in headings]
    assert places == sorted(places)
    matrix = host.page("matrix.html")
    Checked(matrix)
    pythons = [matrix.index(f"Python 3.{minor}<") for minor in (9, 10, 11)]
    assert pythons == sorted(pythons)
    assert set(names) <= {Path(link).stem for link in Checked(matrix).links}


def test_a_recipe_of_no_release_is_found_by_its_gpu_and_a_long_remedy_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = TargetFacts("", "", "3.9", "sm_90")
    monkeypatch.setattr(views, "facts_of", lambda _: facts)
    host = host_with(tmp_path, "a")
    long = "take another compiler " * 100
    host.fake.broken["a"] = Breakage(stage="compile", line="x", cause="y", remedy=long)
    night.run(host)
    text = host.page()
    assert "Python 3.9, sm_90" in text
    assert 500 < text.count("take another compiler") * 22 < 700


def a_build(number: int, seconds: float, size: int) -> KeptBuild:
    started = NOW + dt.timedelta(days=number)
    texts = ("built", "1", "w.whl", "0" * 64, size, "passed", "", ())
    return KeptBuild(f"b{number}", "a", started, seconds, *texts)  # type: ignore[arg-type]


def test_a_plot_ends_at_a_round_number_and_a_target_without_a_build_has_none() -> None:
    builds = [a_build(0, 5400, 390_000_000), a_build(1, 3600, 410_000_000)]
    smoke = {
        "b0": {"passed": 5, "failed": 0, "skipped": 1},
        "b1": {"passed": 4, "failed": 1, "skipped": 1},
    }
    times, sizes, programs = charts.history(builds, smoke)
    assert [plot.written(plot.top) for plot in (times, sizes)] == ["100 min", "600.0 MB"]
    assert programs.kinds == ["passed", "skipped", "failed"]
    assert charts.history([], {}) == []


def test_the_page_of_a_recipe_draws_what_its_builds_took_on_an_axis(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a")
    host.changed_after_a_night().seconds = 360
    night.run(host)
    page = host.page("recipes/a.html")
    Checked(page)
    assert 'aria-label="Time of each build, 2026-01-01 to 2026-01-02"' in page
    assert re.findall(r"<span>(\d+ min)</span>", page) == ["10 min", "5 min", "0 min"]
    assert 'height="60.0%"><title>2026-01-02: 6 min</title>' in page


def test_what_prometheus_reads_has_a_line_for_each_recipe(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", "b")
    host.fake.broken["b"] = Breakage(stage="compile", line="x")
    night.run(host)
    lines = host.page("metrics.txt").splitlines()
    assert 'tfwright_recipe_fine{recipe="a"} 1' in lines
    assert 'tfwright_recipe_fine{recipe="b"} 0' in lines
    assert 'tfwright_build_duration_seconds{recipe="a"} 600.0' in lines
    assert f"tfwright_night_started_timestamp_seconds {NOW.timestamp()}" in lines
    assert "# TYPE tfwright_builds_waiting gauge" in lines
    assert not [line for line in lines if "last_good" in line and '"b"' in line]
    health = json.loads(host.page("health.json"))
    assert health["status"] == "fail"
    assert health["output"].startswith("1 of 2 recipes")


@pytest.mark.medium
def test_the_site_is_copied_after_each_change_and_a_copy_that_fails_costs_no_night(
    tmp_path: Path,
) -> None:
    there = tmp_path / "there"
    host = host_with(tmp_path / "here", "a", publish=["cp", "-r", ".", str(there)])
    night.run(host)
    for name in ("index.html", "simple/index.html", "latest.json"):
        assert (there / name).read_bytes() == (host.site / name).read_bytes()
    notes: list[str] = []
    nightly = host.nightly.model_copy(update={"publish": ("false",)})
    host = replace(host, nightly=nightly, note=notes.append)
    host.fake.clock.next_night()
    assert night.run(host).verdicts == {"a": "unchanged"}
    assert "the site was not copied: 'false' of publish in nightly.toml failed" in notes


def test_a_host_that_lacks_the_same_each_night_has_one_page_for_it(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a")
    host.fake.blocks["a"] = "no rsync"
    for lacking in ("no rsync", "no rsync", "no gcc"):
        host.fake.blocks["a"] = lacking
        host.pass_night()
    assert len(list(host.builds.iterdir())) == 2
    assert "no gcc" in host.page("recipes/a.html")


def test_a_plan_leaves_an_empty_directory_empty(tmp_path: Path) -> None:
    host = host_with(tmp_path / "host", "a")
    assert [item.why for item in night.plan(host)] == ["never built"]
    assert not (tmp_path / "host").exists()
