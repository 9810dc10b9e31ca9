"""What `invoke nightly` prints."""

import pytest
from tests.making import Read
from tests.nightly.fake import a_build

from tfwright.documents.nightly import Target
from tfwright.nightly import page
from tfwright.nightly.builds import Breakage
from tfwright.nightly.night import NightOutcome
from tfwright.nightly.plan import PlannedTarget


def due(name: str, why: str, **keys: object) -> PlannedTarget:
    known = {"target": Target(name=name, recipe=name), "fingerprint": {}}
    return PlannedTarget(**{**known, "why": why, **keys})  # type: ignore[arg-type]


CHANGED = due("changed", "changed", changed=("commit", "patches"), seconds=3600.0)
NEW = due("new", "never built")
LATE = due("late", "changed", within_budget=False, seconds=7200.0)
SAME = due("same", "unchanged", seconds=60.0)


def test_a_plan_counts_only_what_fits_into_the_night(capsys: pytest.CaptureFixture[str]) -> None:
    page.show_plan([CHANGED, LATE, SAME])
    shown = capsys.readouterr().out
    rows = {line.split()[0]: line for line in shown.splitlines() if line}
    assert "build" in rows["changed"]
    assert "changed: commit, patches" in rows["changed"]
    assert "out of budget" in rows["late"]
    assert rows["same"].split()[1] == "no"
    assert "1 of 3 would be built, in about 1 h 00 min." in shown


def test_the_guess_for_a_target_that_was_never_built_is_not_shown(out: Read) -> None:
    page.show_plan([NEW])
    (row,) = (line for line in out().splitlines() if line.startswith("new"))
    assert row.split()[-1] == "-"


def test_a_target_that_cannot_be_built_here_is_in_the_plan_with_its_reason(out: Read) -> None:
    plan = [due("mac", "blocked", detail="this host is Linux\nnot Darwin", within_budget=False)]
    page.show_plan(plan)
    shown = out()
    assert "blocked" in shown
    assert "this host is Linux" in shown
    assert "not Darwin" not in shown
    (row,) = page.plan_data(plan)
    assert str(row["why"]).startswith("blocked: this host is Linux")
    assert row["due"] is False


def test_a_plan_in_json_has_the_numbers() -> None:
    (row,) = page.plan_data([LATE])
    assert row["recipe"] == "late"
    assert (row["due"], row["within_budget"]) == (True, False)
    assert row["seconds"] == 7200


@pytest.mark.parametrize("shown", ["plan", "outcome"])
def test_a_file_without_recipes_is_named_instead_of_an_empty_table(shown: str, out: Read) -> None:
    if shown == "plan":
        page.show_plan([])
    else:
        page.show_outcome(NightOutcome(), "index.html")
    assert out() == "nightly.toml lists no recipe.\n"


def test_an_outcome_shows_the_first_line_of_what_broke_and_the_page(out: Read) -> None:
    outcome = NightOutcome(
        {"good": "good", "bad": "failed"}, {"bad": "no such header\nmore"}, reproduced="good"
    )
    page.show_outcome(outcome, "site/index.html")
    shown = out()
    assert "no such header" in shown
    assert "more" not in shown
    assert "built again from nothing: good" in shown
    assert shown.splitlines()[-1] == "page: site/index.html"


def test_a_night_without_a_fault_has_no_column_for_reasons(out: Read) -> None:
    page.show_outcome(NightOutcome({"fine": "good"}), "x")
    assert "why" not in out()


def test_a_worker_says_what_broke_in_an_order(err: Read) -> None:
    broken = Breakage(stage="compile", line="no such header")
    page.show_order(a_build(target="mine", seconds=61.4, broken=broken))
    assert err() == "mine: failed in 61 s: no such header\n"


def test_an_outcome_shows_how_a_wheel_that_was_built_again_differs(out: Read) -> None:
    outcome = NightOutcome({"good": "good"}, reproduced="good", difference="a.so differs")
    page.show_outcome(outcome, "x")
    assert "not reproduced: good: a.so differs\n" in out()
