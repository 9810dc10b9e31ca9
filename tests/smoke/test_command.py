"""Commands that look at wheels and builds, as a user types them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.making import Maker, Read, make_file
from tests.remedies.following import CommandLine
from tests.smoke.test_page import report

from tfwright.smoke import smoking


def test_a_recipe_that_was_never_built_has_cost_nothing(
    shell: CommandLine, recipe_file: Path, out: Read
) -> None:
    shell.succeeds(f"invoke cost --recipe {recipe_file} --json")
    spent = json.loads(out())
    assert (spent["stages"], spent["slowest"]) == ([], [])


@pytest.mark.medium
@pytest.mark.parametrize("shown", ["", "--json"])
def test_a_wheel_that_fails_has_its_report_before_its_error(
    shell: CommandLine, make_wheel: Maker, monkeypatch: pytest.MonkeyPatch, out: Read, shown: str
) -> None:
    # The venv of a real trial takes longer than all that is shown of it.
    wheel = make_wheel()
    log = make_file(wheel.with_name("cnn.log"), "no such symbol")
    *others, cnn = report().outcomes[:3]
    outcomes = (*others, replace(cnn, log=str(log)))
    failed = replace(report(wheel.name), outcomes=outcomes)
    monkeypatch.setattr(smoking, "smoke", lambda *_: failed)
    folder = wheel.parent / "report"
    command = f"invoke smoke {wheel} --report {folder} {shown}"
    assert shell.status(command) == 6
    assert shell.fault
    assert "fails 'cnn'" in shell.fault.what
    assert "no such symbol" in shell.fault.evidence.lines
    assert "needs a GPU" in (folder / "smoke.html").read_text("utf-8")
    printed = out()
    if shown:
        assert json.loads(printed)["wheel"] == wheel.name
    else:
        assert "1 passed, 1 skipped, 1 failed" in printed


def test_a_report_that_cannot_be_written_is_refused_before_the_trial(
    shell: CommandLine, make_wheel: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smoking, "smoke", lambda *_: pytest.fail("the trial began"))
    wheel = make_wheel()
    assert shell.status(f"invoke smoke {wheel} --report {wheel}/report") == 3
    assert shell.fault
    assert f"{wheel} takes no files" in shell.fault.what
