"""The shell in a stage's directory."""

import subprocess
from pathlib import Path

import pytest

from tfwright.pipeline.engine import bazel_function
from tfwright.tools.process.command import Command


def typed(tmp_path: Path, line: str) -> list[str]:
    """Return what a Bazel gets from a line typed in the shell of a stage that runs it."""
    program = tmp_path / "a bazel/bazel"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    program.chmod(0o755)
    startup = (f"--output_base={tmp_path}/a base", "--nohome_rc")
    options = ("--copt=-DA=b c", f"--profile={tmp_path}/profile", "--jobs=4")
    argv = (str(program), *startup, "build", *options, "--", "//a:b", "//--c")
    env = bazel_function(Command(argv, tmp_path, {}))
    done = subprocess.run(
        ["/bin/bash", "--norc", "-c", line],
        env=env,
        check=True,
        capture_output=True,
        text=True,
    )
    return [word.replace(str(tmp_path), "") for word in done.stdout.splitlines()]


@pytest.mark.parametrize("command", ["build", "test", "run", "aquery", "cquery"])
def test_a_build_that_is_typed_has_the_options_of_the_stage(
    tmp_path: Path, command: str
) -> None:
    assert typed(tmp_path, f"bazel {command} --jobs=1 '//x:y z'") == [
        "--output_base=/a base",
        "--nohome_rc",
        command,
        "--copt=-DA=b c",
        "--jobs=4",
        "--jobs=1",
        "//x:y z",
    ]


def test_another_command_that_is_typed_asks_the_same_server(
    tmp_path: Path,
) -> None:
    assert typed(tmp_path, "bazel info release") == [
        "--output_base=/a base",
        "--nohome_rc",
        "info",
        "release",
    ]


def test_the_shell_of_a_stage_without_bazel_has_no_such_function(
    tmp_path: Path,
) -> None:
    assert (
        bazel_function(Command(("bash", "build_pip_package.sh"), tmp_path, {}))
        == {}
    )
