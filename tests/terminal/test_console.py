"""What people read."""

import signal
import sys
from pathlib import Path

import pytest
from tests.making import Read

from tfwright.errors import Evidence, HostError
from tfwright.progress import Progress
from tfwright.terminal import console, text


@pytest.fixture
def on_terminal(err: Read, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Let standard error be a terminal without colours; return what reads it."""
    # The class, since the test gets another stream than this fixture.
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _: True)
    for name, value in {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "80"}.items():
        monkeypatch.setenv(name, value)
    return err


def test_an_error_says_what_what_to_do_where_to_look_and_how_to_resume(err: Read) -> None:
    fault = HostError(
        "No compiler",
        remedy="Install g++.",
        evidence=Evidence(
            command=("cc", "a b.c"), status=1, log=Path("logs/x.log"), lines=("cc: not found",)
        ),
    )
    fault.stage = "check"
    console.show_error(fault, resume="invoke build --recipe demo")
    assert err() == (
        "\nFailed in check: No compiler\n"
        "    | cc: not found\n"
        "  do:     Install g++.\n"
        "  ran:    cc 'a b.c'  (status 1)\n"
        "  log:    logs/x.log\n"
        "  resume: invoke build --recipe demo\n"
    )


def test_an_error_says_where_it_was_found_and_what_is_known_of_its_log(err: Read) -> None:
    evidence = Evidence(where="recipe.toml:3", log=Path("pip.log"), command=("pip",))
    fault = HostError("pip failed", remedy="x", evidence=evidence)
    console.show_error(fault, "", lambda found: text.tell(f"  kind:   {found.log}"))
    assert err().splitlines()[3:] == [
        "  where:  recipe.toml:3",
        "  ran:    pip",
        "  log:    pip.log",
        "  kind:   pip.log",
    ]


def test_the_first_line_of_an_error_fits_the_width_with_its_label(
    err: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    fault = HostError("word " * 40, remedy="Wait.")
    fault.stage = "configure"
    console.show_error(fault)
    lines = err().splitlines()
    assert lines[1].startswith("Failed in configure: word word")
    assert lines[2].startswith("    word word")
    assert max(map(len, lines)) <= 60


def test_each_stage_has_one_line_when_it_is_over(err: Read) -> None:
    terminal = console.Terminal()
    terminal.note("before any stage")
    terminal.skipped("check")
    terminal.started("fetch", "no earlier result")
    terminal.note("from the vault")
    terminal.finished("fetch", 2.0)
    assert err() == (
        "  - before any stage\n"
        "  check      kept\n"
        "  fetch      - from the vault\n"
        "  fetch            2.0 s   no earlier result\n"
    )


def test_an_interrupted_build_can_be_resumed_and_another_command_begins_again(err: Read) -> None:
    console.show_interrupted()
    assert err() == "\nStopped.\n"
    console.show_interrupted("invoke build")
    assert err() == ("\nStopped; finished stages are kept.\n  resume: invoke build\n")


def test_without_a_terminal_progress_is_a_line_now_and_then(
    err: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = console.Terminal()
    terminal.started("compile", "no earlier result")
    terminal.progress(Progress(1, 4024))
    assert err() == ""
    monkeypatch.setattr(console, "LINE_SECONDS", 0.0)
    # Another piece of work that only begins.
    terminal.progress(Progress(1, 1310, "objects"))
    terminal.progress(Progress(1790, 4024, doing="Compiling core.cc", failures=2))
    assert err() == "  compile    1,790 of 4,024 actions (44%), 2 failed: Compiling core.cc\n"
    terminal.progress(Progress(1790, 4024, doing="Compiling core.cc", held=5 << 29, room=24 << 30))
    assert err() == "  compile    1,790 of 4,024 actions (44%), 2.5 of 24 GiB: Compiling core.cc\n"


def test_a_service_stop_reads_as_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), console.sigterm_as_interrupt():
        signal.raise_signal(signal.SIGTERM)


def test_the_bar_counts_in_the_unit_of_what_a_stage_counts_by_now(on_terminal: Read) -> None:
    listener = console.Terminal()
    listener.started("fetch", "")
    listener.progress(Progress(1000, 2000, "B", "bazel"))
    assert "B/s" in on_terminal()
    listener.progress(Progress(21, 67, "archives", "zlib"))
    shown = on_terminal()
    assert "21/67" in shown
    assert "archives/s" in shown
    listener.note("Done")


def test_the_foot_of_a_build_makes_way_for_a_note(on_terminal: Read) -> None:
    listener = console.Terminal()
    listener.started("compile", "")
    listener.progress(Progress(1, 2, doing="Analyzing"))
    assert "Analyzing" in on_terminal()
    listener.note("Bazel starts again")
    erased, said = on_terminal().rsplit("\x1b[2K", 1)
    assert erased
    assert said == "  compile    - Bazel starts again\n"


def test_a_line_takes_the_display_of_a_running_build_away_first(on_terminal: Read) -> None:
    listener = console.Terminal()
    listener.progress(Progress(2, 6, doing="Compiling core.cc"))
    text.tell("16 archives")
    shown = on_terminal()
    # The cursor goes up, and the line is erased.
    assert "\x1b[2K" in shown.partition("16 archives")[0]
    assert "Compiling" not in shown.partition("16 archives")[2]


def test_the_display_of_a_running_build_leaves_standard_output_to_scripts(
    monkeypatch: pytest.MonkeyPatch, out: Read
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    listener = console.Terminal()
    listener.progress(Progress(2, 6, doing="Compiling core.cc"))
    sys.stdout.write("demo.lock\n")
    assert out() == "demo.lock\n"
    text.tell("the end")


def test_a_bar_that_is_full_goes_away(on_terminal: Read) -> None:
    listener = console.Terminal()
    listener.progress(Progress(1, 2, "files"))
    listener.progress(Progress(2, 2, "files"))
    last = on_terminal().rstrip("\r").rpartition("\r")[2]
    assert last.strip() == ""


def test_a_stage_that_says_nothing_of_its_progress_has_a_line_that_moves(on_terminal: Read) -> None:
    listener = console.Terminal()
    listener.started("verify", "")
    listener.note("a fact")
    assert "0:00:0" in on_terminal()
    listener.finished("verify", 1.0)
    with console.working("inspecting a.whl"):
        assert "inspecting a.whl" in on_terminal()


def test_nothing_of_progress_is_left_in_a_log(err: Read) -> None:
    listener = console.Terminal()
    listener.progress(Progress(1, 1310, "objects"))
    with console.working("inspecting a.whl"):
        pass
    assert err() == ""
