"""The command line, as Invoke reads it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.making import Maker, make_file

from tfwright import STARTED_AS, tasks
from tfwright.documents.recipe import ROOT

pytestmark = pytest.mark.medium


def invoke(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "invoke", "--search-root", str(ROOT), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["build", "inspect", "diagnose", "compare"])
def test_help_is_shown_wherever_it_is_asked_for(command: str, tmp_path: Path) -> None:
    (tmp_path / "--help").write_text("", "utf-8")
    done = invoke(tmp_path, command, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: invoke {command}")


def test_inspect_says_which_files_name_directories_of_this_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_wheel: Maker
) -> None:
    build_out = tmp_path / "build_out"
    (tmp_path / "host.toml").write_text(f'build_out = "{build_out}"\n', "utf-8")
    wheel = make_wheel(
        {"small.h": f'"{build_out}/toolkits/cuda-11.8"', "small-1.0.dist-info/tfwright.json": "{}"}
    )
    monkeypatch.setenv("TFWRIGHT_HOST_FILE", str(tmp_path / "host.toml"))
    done = invoke(tmp_path, "inspect", str(wheel))
    output = " ".join(done.stdout.split())
    assert f"small.h names {build_out}/toolkits, " in output
    assert f"such as {build_out}/toolkits/cuda-11.8. Users" in output
    assert done.returncode == 0, "the wheel is sound"


def test_a_user_without_invoke_on_the_path_is_shown_what_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STARTED_AS, "python3 up/tasks.py")
    output = " ".join(invoke(tmp_path, "inspect").stderr.split())
    assert "'python3 up/tasks.py inspect --help'" in output
    assert "Usage: python3 up/tasks.py build" in invoke(tmp_path, "build", "--help").stdout


@pytest.mark.parametrize(
    ("program", "module"), [(str(ROOT / "tasks.py"), "compileall"), ("-m tfwright", "invoke")]
)
def test_ctrl_c_during_imports_ends_the_program_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, module: str
) -> None:
    stop = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    make_file(tmp_path / f"{module}.py", stop)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT / "src")]))
    command = [sys.executable, *program.split(), "recipes"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (-signal.SIGINT, "")


def test_invoke_without_a_command_builds_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A host file that cannot be read ends the build before it begins.
    (tmp_path / "host.toml").write_text("nonsense", "utf-8")
    monkeypatch.setenv("TFWRIGHT_HOST_FILE", str(tmp_path / "host.toml"))
    done = invoke(tmp_path)
    assert done.returncode == 2
    assert "host.toml:1: not valid TOML" in done.stderr


@pytest.mark.parametrize(
    ("words", "what", "remedy"),
    [
        (
            ("build", "--recpie", "demo"),
            "Unknown option '--recpie' of 'invoke build'",
            "Did you mean --recipe?",
        ),
        (
            ("doctor", "demo"),
            "'invoke doctor' does not take the word 'demo'",
            "Did you mean 'invoke doctor --recipe demo'?",
        ),
        (
            ("inspect", "a.whl", "b.whl"),
            "'invoke inspect' does not take the word 'b.whl'",
            "Write 'invoke inspect WHEEL'.",
        ),
        (
            ("match", "--tensorflow", "2.4"),
            "Unknown option '--tensorflow' of 'invoke match'",
            "Did you mean --release?",
        ),
        (("build", "--jobs"), "--jobs of 'invoke build' needs a value", ""),
        (("match", "--cpu"), "--cpu of 'invoke match' needs a value", "--gpu none"),
        # invoke itself would leave out an option that may be repeated, and build the demo.
        (("build", "--recipe"), "--recipe of 'invoke build' needs a value", ""),
        (("build", "-r", "--fresh"), "-r of 'invoke build' needs a value", ""),
        (("compare", "a.whl"), "'invoke compare' needs SECOND", "'invoke compare FIRST SECOND'"),
        (("diagnose", "--recipe", "demo"), "Unknown option '--recipe' of 'invoke diagnose'", ""),
        (("--frob",), "Unknown option '--frob'", "'invoke --list'"),
        # Nothing is like it but the dashes.
        (
            ("match", "--foo"),
            "Unknown option '--foo' of 'invoke match'",
            "do: 'invoke match --help' lists",
        ),
        # invoke would follow these where commands run programs through it; ours would delete.
        (("--dry", "clean"), "tfwright's commands do not follow invoke's option --dry", "plan"),
        (("clean", "--warn-only"), "tfwright's commands do not follow invoke's option", ""),
        (("--prompt-for-sudo-password", "clean"), "tfwright's commands do not follow", "root"),
        (("buld",), "Unknown command 'buld'", "Did you mean 'invoke build'?"),
        (("inspect", "--jsno"), "'--jsno' is an unknown option of 'invoke inspect'", ""),
        (("diagnose", "--jsno"), "'--jsno' is an unknown option of 'invoke diagnose'", ""),
        (("smoke",), "'invoke smoke' needs a file", "'invoke smoke --help' shows how"),
        (("inspect", ""), "'invoke inspect' needs a file", "'invoke inspect --help' shows how"),
        (("diagnose", ""), "'invoke diagnose' needs a file", "'invoke diagnose --help' shows how"),
        (("index", "--port", "abc"), "'abc' is not a whole number", ""),
        (("vault", "--deep"), "--deep does nothing without --links", ""),
        (("patch", "x", "--write"), "--write does nothing without --refresh", ""),
        (("vault", "--gc", "--repair"), "--verify and --gc do not go together", ""),
        (("lint", "--recipe", "demo", "--changed", "main"), "--recipe and --changed do not go", ""),
        (("index", "--yank", "a.whl", "--unyank", "a.whl"), "--yank and --unyank do not go", ""),
    ],
)
def test_a_faulty_command_line_is_answered_with_what_is_wrong_and_what_was_meant(
    words: tuple[str, ...], what: str, remedy: str, tmp_path: Path
) -> None:
    done = invoke(tmp_path, *words)
    output = " ".join(done.stderr.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Failed: {what}" in output
    assert remedy in output


def test_a_faulty_command_line_is_answered_for_machines_too(tmp_path: Path) -> None:
    done = invoke(tmp_path, "build", "--recpie", "demo", "--json")
    assert json.loads(done.stdout)["exit_status"] == done.returncode == 2


def test_a_word_that_can_be_left_out_may_stand_behind_options(tmp_path: Path) -> None:
    done = invoke(tmp_path, "smoke", "--module", "numpy", "none.whl", "--json")
    assert "The wheel none.whl does not exist" in done.stderr


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("compare", "invoke compare FIRST SECOND [options]"),
        ("smoke", "invoke smoke [WHEEL] [options]"),
        ("pin", "invoke pin [options]"),
        ("bundle", "invoke bundle [options]"),
    ],
)
def test_the_usage_names_the_words_that_a_command_takes(
    command: str, usage: str, tmp_path: Path
) -> None:
    shown = invoke(tmp_path, command, "--help").stdout
    assert shown.startswith(f"Usage: {usage}\n")


def test_help_is_a_command_as_it_is_of_other_programs(tmp_path: Path) -> None:
    assert invoke(tmp_path, "help").stdout == invoke(tmp_path, "--list").stdout
    shown = invoke(tmp_path, "help", "build").stdout
    assert shown == invoke(tmp_path, "build", "--help").stdout


@pytest.mark.parametrize("word", sorted(tasks.REPLACED))
def test_a_command_of_an_earlier_version_is_answered_with_the_new_one(
    word: str, tmp_path: Path
) -> None:
    done = invoke(tmp_path, word)
    assert done.returncode == 2
    assert f"Use '{tasks.REPLACED[word]}' instead." in done.stderr


def test_what_a_command_imports_is_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "compiled"))
    assert invoke(tmp_path, "--list").returncode == 0
    kept = (tmp_path / "compiled").rglob("tfwright/**/*.pyc")
    compiled = {path.name.partition(".")[0] for path in kept}
    assert compiled >= {"tasks", "options", "command", "program"}


def test_what_is_left_at_the_end_is_not_searched_for_garbage(tmp_path: Path) -> None:
    # What is registered first is called last.
    program = (
        "import atexit, gc; from invoke.main import program; "
        "atexit.register(lambda: print(gc.get_freeze_count(), len(gc.get_objects()))); "
        f"program.run(['invoke', '--search-root', {str(ROOT)!r}, '--list'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    frozen, searched = done.stdout.split()[-2:]
    assert int(frozen) > 100 * int(searched)


def test_the_list_shows_every_command_in_its_group(tmp_path: Path) -> None:
    listed = invoke(tmp_path, "--list").stdout
    for group, names in tasks.names().items():
        assert f"\n{group}\n" in f"\n{listed}"
        for name in names:
            assert f"\n  {name} " in listed
    assert "\nother\n" not in listed


def test_a_bundle_is_written_nowhere_unless_its_file_is_named(tmp_path: Path) -> None:
    done = invoke(tmp_path, "bundle")
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "Usage: " in invoke(tmp_path, "bundle", "--help").stdout


def test_the_words_of_a_patch_stand_behind_the_command(tmp_path: Path) -> None:
    given = ("--why=x", "--upstream=none; x", "--drop-when=some day")
    done = invoke(tmp_path, "patch", "no numa", "--recipe", "gone.toml", *given)
    assert done.returncode == 2
    assert "Unknown recipe 'gone.toml'" in done.stderr
    without = invoke(tmp_path, "patch", "--refresh", "5", "--recipe", "gone.toml")
    assert "Unknown recipe 'gone.toml'" in without.stderr


def test_the_commands_are_those_of_the_checkout_at_hand_whatever_venv_is_active(
    tmp_path: Path,
) -> None:
    make_file(tmp_path / "tfwright/__init__.py", "")
    started = "import tfwright; from invoke.main import program; program.run()"
    done = subprocess.run(
        [sys.executable, "-c", started, "--search-root", str(ROOT), "--list"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
