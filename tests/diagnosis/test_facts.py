"""What is known of a build, and what a log shows of it."""

import sys
from pathlib import Path

import pytest

from tfwright.diagnosis import facts, reader
from tfwright.diagnosis.facts import Facts


def test_a_log_that_does_not_name_cuda_may_be_of_a_build_with_it() -> None:
    assert facts.read_facts(["cannot find libcudart.so.9.2"]).cuda is True
    assert facts.read_facts(["all is well"]).cuda is None


@pytest.mark.parametrize(
    ("need", "holds"),
    [
        ("cuda", True),
        ("gpu", None),
        ("Linux", True),
        ("Darwin", False),
        ("bazel>=0.15", True),
        ("release>=1.8", None),
        ("?", None),
    ],
)
def test_a_fact_holds_or_does_not_or_is_not_known(
    need: str,
    holds: bool | None,  # noqa: FBT001 a case of the table above
) -> None:
    known = Facts(system="Linux", cuda=True, bazel="0.26.1")
    assert known._holds(need) is holds


def test_a_log_can_come_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").write_text("a.cc:1:1: error: expected ';'\n", "utf-8")
    with (tmp_path / "log").open(encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        found = reader.diagnose("-")
    assert found.first
    assert found.first.line == 1
