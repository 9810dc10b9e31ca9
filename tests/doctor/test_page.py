"""The page of doctor: findings before facts, and what each one stops."""

import pytest
from tests.making import Read

from tfwright.doctor import page
from tfwright.doctor.inventory import Fact, Finding
from tfwright.host.place import NOTHING, Seen
from tfwright.terminal.answer import json_value

COMPILER = Finding("no gcc 7", "gcc 7", "apt-get install gcc-7", "check", "docs")
CUDA = Finding("no CUDA", "CUDA 9.2", "invoke toolkit", "configure")
NOTE = Finding("an old git", "git 2.30", "Update git.")
FACTS = (
    Fact("system", Seen("Linux x86_64", "uname -sm"), decides=True),
    Fact("git", Seen("2.20", "git --version")),
    Fact("driver", NOTHING),
)


def examined(
    out: Read,
    findings: tuple[Finding, ...] = (),
    facts: tuple[Fact, ...] = FACTS,
    *,
    everything: bool = False,
) -> list[str]:
    page.show_examination("demo", facts, findings, everything=everything)
    return out().splitlines()


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ((), "the build can start"),
        ((NOTE,), "the build can start"),
        ((COMPILER,), "the build cannot start; 1 finding stops it"),
        ((COMPILER, CUDA), "the build cannot start; 2 findings stop it"),
        ((CUDA,), "the build would stop before 'configure'; 1 finding stops it"),
    ],
)
def test_the_verdict_is_the_first_line(
    out: Read, findings: tuple[Finding, ...], verdict: str
) -> None:
    assert examined(out, findings)[0] == f"demo: {verdict}"


def test_a_finding_says_what_it_stops_what_is_wanted_and_what_to_do(out: Read) -> None:
    assert examined(out, (COMPILER, NOTE), ())[1:] == [
        "",
        "1. no gcc 7  (stops 'check')",
        "   wanted  gcc 7",
        "   why     docs",
        "   do      apt-get install gcc-7",
        "",
        "2. an old git  (warning)",
        "   wanted  git 2.30",
        "   do      Update git.",
    ]


def test_a_comment_that_is_too_long_for_its_line_stays_a_comment_below_it(
    out: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = "invoke toolkit --recipe demo  # downloads CUDA and asks for its licence"
    alone = "# put the host file's cuda where this host has one, or take it out"
    finding = Finding("no CUDA", "CUDA", f"{row}\n{alone}", "check")
    monkeypatch.setenv("COLUMNS", "120")
    shown = examined(out, (finding,), ())
    assert shown[4:] == [f"   do      {row}", f"           {alone}"]
    monkeypatch.setenv("COLUMNS", "48")
    assert examined(out, (finding,), ())[4:] == [
        "   do      invoke toolkit --recipe demo",
        "           # downloads CUDA and asks for its",
        "           # licence",
        "           # put the host file's cuda where this",
        "           # host has one, or take it out",
    ]


def test_what_was_not_found_is_counted_and_listed_only_on_demand(out: Read) -> None:
    lines = examined(out)
    assert [line.split() for line in lines[3:5]] == [
        ["*", "system", "Linux", "x86_64", "uname", "-sm"],
        ["git", "2.20", "git", "--version"],
    ]
    assert "* can change the bytes of this recipe's wheel" in lines
    assert lines[-1].startswith("1 optional item was not found;")
    lines = examined(out, everything=True)
    assert ["driver", "-"] in [line.split() for line in lines]
    assert "--all" not in "\n".join(lines)


def test_facts_that_decide_nothing_need_no_explanation(out: Read) -> None:
    assert examined(out, facts=FACTS[1:2])[-1].split()[0] == "git"


def test_scripts_get_every_fact_and_one_entry_for_each_command() -> None:
    two = Finding("no gcc", "gcc", "apt-get update\napt-get install gcc", "check")
    said = json_value(page.examination_data("demo", FACTS, (two,)))
    assert said["may_start"] is False
    assert [fact["name"] for fact in said["facts"]] == ["system", "git", "driver"]
    (finding,) = said["findings"]
    assert finding["remedy"] == ["apt-get update", "apt-get install gcc"]
