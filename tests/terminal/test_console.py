"""What people read."""

import signal
import sys
from pathlib import Path

import pytest

from tfwright.errors import Evidence, HostError
from tfwright.pipeline.engine import Planned
from tfwright.pipeline.stage import Writes
from tfwright.pipeline.stages import PIPELINE
from tfwright.progress import Progress
from tfwright.terminal import console
from tfwright.terminal import plan as page
from tfwright.tools.process.command import Command


def test_an_error_says_what_what_to_do_where_to_look_and_how_to_resume(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fault = HostError(
        "No compiler",
        remedy="Install g++.",
        evidence=Evidence(
            command=("cc", "a b.c"),
            status=1,
            log=Path("logs/x.log"),
            lines=("cc: not found",),
        ),
    )
    fault.stage = "check"
    console.explain(fault, resume="invoke build --recipe demo")
    assert capsys.readouterr().err == (
        "\nFailed in check: No compiler\n"
        "    | cc: not found\n"
        "  do:     Install g++.\n"
        "  ran:    cc 'a b.c'  (status 1)\n"
        "  log:    logs/x.log\n"
        "  resume: invoke build --recipe demo\n"
    )


def test_the_first_line_of_an_error_fits_the_width_with_its_label(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    fault = HostError("word " * 40, remedy="Wait.")
    fault.stage = "configure"
    console.explain(fault)
    lines = capsys.readouterr().err.splitlines()
    assert lines[1].startswith("Failed in configure: word word")
    assert lines[2].startswith("    word word")
    assert max(map(len, lines)) <= 60


def test_without_a_terminal_progress_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = console.Terminal()
    terminal.started("compile", "not done yet")
    terminal.progress(Progress(1, 4024))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(console, "LINE_SECONDS", 0.0)
    terminal.progress(Progress(1790, 4024, doing="Compiling core.cc", failures=2))
    assert (
        capsys.readouterr().err
        == "  compile    1,790 of 4,024 actions (44%), 2 failed: Compiling core.cc\n"
    )
    terminal.progress(
        Progress(
            1790, 4024, doing="Compiling core.cc", held=5 << 29, room=24 << 30
        )
    )
    assert (
        capsys.readouterr().err
        == "  compile    1,790 of 4,024 actions (44%), 2.5 of 24 GiB: Compiling core.cc\n"
    )


def test_a_plan_shows_commands_environment_and_files_of_the_stages_that_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = (
        Command(("make", "a b"), Path("/tree"), {"TZ": "UTC"}),
        Writes(Path("/tree/rc"), "build --x\n"),
    )
    page.show_plan(
        [
            Planned(PIPELINE[0], "", lambda: ()),
            Planned(PIPELINE[4], "not done yet", lambda: steps),
        ],
        as_json=False,
    )
    assert capsys.readouterr().out == (
        f"keep check      {PIPELINE[0].summary}\nrun  compile    not done yet\n       $ make 'a b'\n           in /tree\n           TZ=UTC\n       writes /tree/rc\n           build --x\n"
    )


def test_a_service_stop_reads_as_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), console.ending_gently():
        signal.raise_signal(signal.SIGTERM)


def test_the_bar_counts_in_the_unit_of_what_a_stage_counts_by_now(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    listener = console.Terminal()
    listener.started("fetch", "")
    listener.progress(Progress(1000, 2000, "B", "bazel"))
    assert "B/s" in capsys.readouterr().err
    listener.progress(Progress(21, 67, "archives", "zlib"))
    shown = capsys.readouterr().err
    assert "21/67" in shown
    assert "archives/s" in shown
    listener.note("Done")
