"""What `invoke plan` prints."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.making import Read, make_file

from tfwright.build import page
from tfwright.doctor.inventory import Finding
from tfwright.pipeline.engine import Planned
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import RawWheel
from tfwright.pipeline.stage import Artefact, Step, Writes
from tfwright.terminal.answer import json_value
from tfwright.tools.process.command import Command, clean_environment

HERE = Path("/srv/tree")
CLEAN = clean_environment(HERE)
STEPS = (
    Command(("./configure",), HERE, {**CLEAN, "TF_NEED_CUDA": "1"}),
    Writes(HERE / ".tf_configure.bazelrc", "build --config=cuda\n"),
    Command(("bazel", "build"), HERE, CLEAN),
)


def planned(why: str, steps: Sequence[Step] = STEPS) -> Planned:
    stage = SimpleNamespace(name="configure", summary="answers ./configure")
    return Planned(stage, why, lambda: steps)  # type: ignore[arg-type]


def test_the_stages_come_first_then_their_commands_and_what_changes_between_them(out: Read) -> None:
    page.show_plan([planned("an answer changed"), planned("", ())])
    assert out().splitlines() == [
        "run  configure  an answer changed",
        "keep configure  answers ./configure",
        "",
        "What they run and write; --json has each with its environment",
        "",
        "configure",
        "  $ ./configure",
        "      in /srv/tree",
        "      HOME=/srv/tree",
        "      TF_NEED_CUDA=1",
        "  writes /srv/tree/.tf_configure.bazelrc",
        "      build --config=cuda",
        "  $ bazel build",
        "      without TF_NEED_CUDA",
    ]


def test_what_repeats_is_shown_once_with_what_differs(out: Read) -> None:
    alike = [
        Command(("git", "apply", f"/patches/{name}.patch"), HERE, CLEAN) for name in ("a", "b", "c")
    ]
    written = [Writes(Path(f"/vault/{n}{n}/file"), f"In place of {n}") for n in range(2)]
    other = Command(("git", "apply", "/patches/c.patch"), Path("/srv"), CLEAN)
    page.show_plan([planned("an answer changed", [*alike, other, *written])])
    assert out().splitlines()[5:] == [
        "  $ git apply /patches/a.patch",
        "      in /srv/tree",
        "      HOME=/srv/tree",
        "      2 more, with b.patch, c.patch in place of a.patch",
        "  $ git apply /patches/c.patch",
        "      in /srv",
        "  writes 2 files below /vault",
        "      In place of 0",
        "      In place of 1",
    ]


def test_a_stage_that_is_kept_shows_no_command(out: Read) -> None:
    page.show_plan([planned("")])
    assert out() == "keep configure  answers ./configure\n"


def test_what_keeps_this_host_from_building_stands_above_the_plan(out: Read) -> None:
    findings = (
        Finding("no CUDA 9.2", "CUDA 9.2", "Install it.", "configure"),
        Finding("gcc 12", "gcc 11", "Try it."),
    )
    page.show_plan([planned("")], findings, [("Compiled twice", "Python 2 and 3")], recipe="mine")
    shown = out()
    assert shown.startswith("This host cannot build the recipe yet: 1 finding\n")
    assert "  configure  no CUDA 9.2; wanted: CUDA 9.2\n" in shown
    assert "gcc 12" not in shown
    assert "'invoke doctor --recipe mine' has the remedies" in shown
    assert "Compiled twice  Python 2 and 3\n" in shown


def test_a_plan_in_json_has_every_value_in_its_own_kind() -> None:
    (stage,) = json_value(page.plan_data([planned("an answer changed")]))
    assert (stage["run"], stage["why"]) == (True, "an answer changed")
    command, written, _ = stage["steps"]
    assert command["argv"] == ["./configure"]
    assert (command["cwd"], command["brief"]) == ("/srv/tree", False)
    assert command["env"]["TF_NEED_CUDA"] == "1"
    assert written["content"] == "build --config=cuda\n"


def test_the_path_of_a_finished_wheel_is_alone_on_standard_output(
    job: RecipeJob, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wheel = make_file(tmp_path / "x.whl", b"wheel")
    made = Artefact.of(wheel)
    page.show_start(job)
    page.show_result(job, RawWheel(wheel=made))
    said = capsys.readouterr()
    assert said.out == f"{wheel}\n"
    assert said.err == (f"small: A recipe for tests\n  5 bytes, sha256 {made.sha256}\n")


def test_a_build_up_to_another_stage_says_that_this_was_asked_for(
    job: RecipeJob, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wheel = make_file(tmp_path / "x.whl", b"wheel")
    made = RawWheel(wheel=Artefact.of(wheel))
    page.show_result(replace(job, until="package"), made)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "  stopped after package, as requested\n"
