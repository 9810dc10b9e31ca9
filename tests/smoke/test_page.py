import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pydantic import JsonValue
from tests.making import Read

from tfwright.smoke import page
from tfwright.smoke.run import TrialOutcome
from tfwright.smoke.smoking import SmokeReport
from tfwright.terminal.answer import json_value

HOSTILE = "</li><script>alert(1)</script>|`"


def report(
    wheel: str = "tensorflow-1.8.0-cp36-cp36m-linux_x86_64.whl", reason: str = "went well"
) -> SmokeReport:
    points: JsonValue = [
        {"size": size, "seconds": size / 1e6, "gflops": size / 10} for size in (32, 64)
    ]
    outcomes = (
        TrialOutcome("imports", "passed", reason),
        TrialOutcome("memory", "skipped", "needs a GPU"),
        TrialOutcome("cnn", "failed", reason, numbers={"cpu_seconds": 0.5}),
        TrialOutcome("sweep", "passed", "fast", 1.0, {"curves": {"cpu": points, "gpu": points}}),
    )
    host = ("3.6.15", "a machine", "2026-01-01T00:00:00+00:00")
    packages = (("numpy<1.17",), ("six==1.0",))
    return SmokeReport(wheel, "0" * 64, 1000, "tensorflow", *host, *packages, outcomes)


def test_each_program_has_a_line_and_the_totals_come_last(out: Read) -> None:
    for outcome in report().outcomes[1:]:
        page.show_outcome(outcome)
    page.show_report(report())
    *lines, totals = out().splitlines()
    assert lines == [
        "  skipped memory             0.0 s  needs a GPU",
        "  failed  cnn                0.0 s  went well",
        "  passed  sweep              1.0 s  fast",
    ]
    assert totals == (f"{report().wheel} on Python 3.6.15: 2 passed, 1 skipped, 1 failed")
    said = json_value(report())
    assert said["outcomes"][2]["numbers"] == {"cpu_seconds": 0.5}


class Tags(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)


def test_the_page_holds_every_outcome_the_plot_and_the_numbers(tmp_path: Path, err: Read) -> None:
    page.write_report(report(), tmp_path)
    text = (tmp_path / "smoke.html").read_text("utf-8")
    assert "2 passed, 1 skipped, 1 failed" in text
    assert "The module imports." in text
    assert Tags(text).seen.count("svg") == 1
    data = json.loads((tmp_path / "smoke.json").read_bytes())
    assert data["outcomes"][1]["reason"] == "needs a GPU"
    assert "smoke.html" in err()


def test_a_program_of_another_tfwright_has_no_summary(tmp_path: Path) -> None:
    outcomes = (TrialOutcome("renamed", "passed", "went well"),)
    page.write_report(replace(report(), outcomes=outcomes), tmp_path)
    text = (tmp_path / "smoke.html").read_text("utf-8")
    assert "renamed" in text
    assert page.summary("imports") not in text


def test_nothing_that_a_wheel_says_becomes_part_of_the_page(tmp_path: Path) -> None:
    page.write_report(report(wheel=HOSTILE, reason=HOSTILE), tmp_path)
    assert "script" not in Tags((tmp_path / "smoke.html").read_text("utf-8")).seen


def test_a_report_without_a_sweep_has_no_plot(tmp_path: Path) -> None:
    page.write_report(replace(report(), outcomes=report().outcomes[:2]), tmp_path)
    assert "svg" not in Tags((tmp_path / "smoke.html").read_text("utf-8")).seen


@pytest.mark.parametrize(
    "curves", [{}, {"CPU": []}, {"CPU": [(0.0, 5.0)]}, {"CPU": [(64.0, float("nan"))]}]
)
def test_a_sweep_without_a_point_draws_nothing(
    curves: dict[str, list[tuple[float, float]]],
) -> None:
    assert page.sweep_plot(curves) is None


def test_a_sweep_has_a_line_for_each_device() -> None:
    curves = {"CPU": [(64.0, 5.0), (128.0, 20.0)], "GPU": [(64.0, 50.0), (128.0, 900.0)]}
    plot = page.sweep_plot(curves)
    assert plot
    assert [*plot.curves] == ["CPU", "GPU"]
    # The last point of the faster device is the highest one, near the upper edge.
    assert plot.curves["GPU"][-1][1] == 13.2
    assert page.sweep_plot({"CPU": [(64.0, 5.0)]})
