"""The pages of patch: what is asked, and what was written."""

from pathlib import Path

import pytest
from tests.making import Typed

from tfwright.patch import page as patch_page
from tfwright.patch.writing import WrittenPatch
from tfwright.tools.git.patching import PatchHeader


def test_what_a_header_lacks_is_asked_for_until_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", Typed("\nnone; ours\nnever\n"))
    header = patch_page.ask_header(PatchHeader("it fails", "", ""))
    assert header == PatchHeader("it fails", "none; ours", "never")


def test_a_written_patch_is_named_on_standard_output_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    patch_page.show_patch(WrittenPatch(Path("0001-a.patch"), ("BUILD",), added=True))
    shown = capsys.readouterr()
    assert shown.out == "0001-a.patch\n"
    assert "changes BUILD" in shown.err
    assert "entered at the end of source.patches" in shown.err


def test_a_redone_patch_is_followed_by_the_command_for_the_next_that_does_not_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    unfit = ("r1/0003-b.patch", "r1/0004-c.patch")
    written = WrittenPatch(Path("0001-a.patch"), (), added=False, unfit=unfit)
    patch_page.show_patch(written, recipe="mine")
    shown = capsys.readouterr().err
    assert "r1/0004-c.patch comes later" in shown
    assert "invoke patch --recipe mine --refresh r1/0003-b.patch\n" in shown
