"""What is said of programs that ask, such as ./configure, done to the letter."""

import tomllib
from pathlib import Path

import pytest
from tests.making import find_text
from tests.remedies.following import failing
from tests.tools.process.test_dialogue import bash, talk
from tests.upstream import commit, run_git

from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import ConfigureTable, SourceTable
from tfwright.errors import HostError, RecipeError, ToolError
from tfwright.rules.patched_tree import PatchedTree
from tfwright.tools.git.work_tree import WorkTree
from tfwright.tools.process import dialogue
from tfwright.tools.process.command import Command

CONFIGURE = 'read -p "Fine? " A; echo "got $A"\n'


@pytest.mark.medium
@pytest.mark.parametrize("fault", ["mode", "first line", "interpreter"])
def test_a_patch_makes_a_script_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    first = {"mode": "#!/bin/bash\n", "first line": "", "interpreter": "#!/x\n"}
    upstream, patch = tmp_path / "upstream", tmp_path / "patches/1.patch"
    pinned = commit(upstream, {"configure": first[fault] + CONFIGURE})
    if fault != "mode":
        (upstream / "configure").chmod(0o755)
        pinned = commit(upstream)
    monkeypatch.setattr(recipes, "PATCHES", patch.parent)

    def asked(*patches: str) -> str:
        table = SourceTable(
            url=f"file://{upstream}", branch="main", commit=pinned, release="1.8", patches=patches
        )
        tree = tmp_path / "tree"
        WorkTree(tree).discard()
        content = PatchedTree(tree, table, upstream / ".git", pinned).apply_all()
        WorkTree(tree).check_out(content)
        command = Command((str(tree / "configure"),), tree, {"PATH": "/bin"})
        return talk(command, {r"Fine\? ": "yes"})[0].text

    remedy = failing(asked, HostError).remedy
    assert "that makes configure executable" in remedy
    shown = find_text(r"such as (#!\S+)\.$", remedy)
    (upstream / "configure").write_text(f"{shown[1]}\n{CONFIGURE}", "utf-8")
    (upstream / "configure").chmod(0o755)
    patch.parent.mkdir()
    diff = run_git("diff", "HEAD", cwd=upstream)
    head = "Why: w\nUpstream: none; x\nDrop when: later\n\n"
    patch.write_text(f"{head}{diff}\n", "utf-8")
    assert "got yes" in asked("1.patch")


@pytest.mark.medium
def test_an_answer_that_no_line_holds_is_shortened(tmp_path: Path) -> None:
    def answered(answer: str) -> str:
        return talk(bash(CONFIGURE, tmp_path), {r"Fine\? ": answer})[0].text

    fault = failing(lambda: answered("x" * 5000), RecipeError)
    shown = find_text(r'Set (by = "\w+") in .* \[configure\], or shorten', fault.remedy)
    ConfigureTable.model_validate(tomllib.loads(shown[1]))
    assert "got xxx" in answered("xxx")


@pytest.mark.medium
def test_a_program_that_needs_longer_gets_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialogue, "FIRST_PATIENCE", 0.1)

    def ended(key: str, seconds: int) -> int:
        table = ConfigureTable.model_validate({key: seconds})
        command = bash("echo thinking; sleep 0.3", tmp_path)
        return talk(command, {}, table.timeout)[0].status

    fault = failing(lambda: ended("timeout", 1), ToolError)
    assert fault.evidence.lines == ("thinking",)
    key = find_text(r"raise '(\w+)' in the recipe's \[configure\]", fault.remedy)
    assert ended(key[1], 60) == 0
