"""What `invoke cost --page` prints."""

from pathlib import Path

import pytest

from tfwright.cost import page
from tfwright.cost.account import CostPage
from tfwright.nightly.pages.charts import TimeChange

PAGE = Path("/srv/cost.html")


def shown(written: CostPage, capsys: pytest.CaptureFixture[str]) -> str:
    page.show_page(written)
    return capsys.readouterr().out


def test_a_page_without_a_comparison_is_named_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(CostPage(PAGE, "", ()), capsys) == "page: /srv/cost.html\n"


def test_a_build_that_took_as_long_as_the_other_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(CostPage(PAGE, "monday", ()), capsys) == (
        "No action took another time than in monday.\npage: /srv/cost.html\n"
    )


def test_the_actions_whose_time_changed_most_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    row = TimeChange("Compiling a.cc", None, 12.0)
    said = shown(CostPage(PAGE, "monday", (row,)), capsys)
    assert said.startswith("Actions whose time changed most:\n")
    assert "+12.0 s" in said
    assert "Compiling a.cc new" in said
