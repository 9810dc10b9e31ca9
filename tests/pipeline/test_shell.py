"""The shell in a stage's directory."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.making import make_file, make_program

from tfwright.documents.recipe import ROOT
from tfwright.pipeline.engine import bazel_function
from tfwright.pipeline.job import RecipeJob
from tfwright.tools.process.command import Command


def typed(tmp_path: Path, line: str) -> list[str]:
    """Return what a Bazel gets from a line typed in the shell of a stage that runs it."""
    program = tmp_path / "a bazel/bazel"
    program.parent.mkdir()
    make_program(program, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    startup = (f"--output_base={tmp_path}/a base", "--nohome_rc")
    options = ("--copt=-DA=b c", f"--profile={tmp_path}/profile", "--jobs=4")
    argv = (str(program), *startup, "build", *options, "--", "//a:b", "//--c")
    env = bazel_function(Command(argv, tmp_path, {}))
    done = subprocess.run(
        ["/bin/bash", "--norc", "-c", line], env=env, check=True, capture_output=True, text=True
    )
    return [word.replace(str(tmp_path), "") for word in done.stdout.splitlines()]


@pytest.mark.parametrize("command", ["build", "test", "run", "aquery", "cquery"])
def test_a_build_that_is_typed_has_the_options_of_the_stage(tmp_path: Path, command: str) -> None:
    assert typed(tmp_path, f"bazel {command} --jobs=1 '//x:y z'") == [
        "--output_base=/a base",
        "--nohome_rc",
        command,
        "--copt=-DA=b c",
        "--jobs=4",
        "--jobs=1",
        "//x:y z",
    ]


def test_another_command_that_is_typed_asks_the_same_server(tmp_path: Path) -> None:
    assert typed(tmp_path, "bazel info release") == [
        "--output_base=/a base",
        "--nohome_rc",
        "info",
        "release",
    ]


def test_the_shell_of_a_stage_without_bazel_has_no_such_function(tmp_path: Path) -> None:
    assert bazel_function(Command(("bash", "build_pip_package.sh"), tmp_path, {})) == {}


@pytest.fixture
def entered(job: RecipeJob, recipe_file: Path, tmp_path: Path) -> Callable[..., list[str]]:
    """Return what types a line into the shell of a recipe's stage, package if none is named."""
    host_file = make_file(tmp_path / "host.toml", f'build_out = "{job.places.build_out}"\n')

    def typed(line: str, stage: str = "package") -> list[str]:
        command = ("shell", "--recipe", str(recipe_file), "--stage", stage)
        done = subprocess.run(
            [sys.executable, "-m", "invoke", *command],
            cwd=ROOT,
            env={**os.environ, "TFWRIGHT_HOST_FILE": str(host_file), "OWN": "x"},
            input=line,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.splitlines() or done.stderr.splitlines()

    return typed


@pytest.mark.medium
def test_the_shell_of_a_stage_is_in_its_tree_with_the_environment_of_its_program(
    entered: Callable[..., list[str]], job: RecipeJob
) -> None:
    job.places.tree.mkdir(parents=True)
    shown = entered('pwd; echo "$TMPDIR"; echo "${OWN-unset}"\n')
    assert shown == [str(job.places.tree), str(job.places.dist / "scratch"), "unset"]


@pytest.mark.medium
def test_the_shell_of_a_compile_that_never_ran_has_the_file_that_bazel_reads_first(
    entered: Callable[..., list[str]], job: RecipeJob
) -> None:
    job.places.tree.mkdir(parents=True)
    rc = job.places.tree.with_name("bazelrc")
    assert f"import {job.places.tree}/.tf_configure.bazelrc" in entered(f"cat '{rc}'\n", "compile")


@pytest.mark.medium
def test_without_a_tree_there_is_no_shell_and_the_error_says_how_to_get_one(
    entered: Callable[..., list[str]], job: RecipeJob, recipe_file: Path
) -> None:
    shown = "\n".join(entered("pwd\n"))
    assert f"{job.places.tree} is not there yet" in shown
    assert f"invoke build --recipe {recipe_file} --until source" in shown
