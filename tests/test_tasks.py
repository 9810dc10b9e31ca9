"""The command line, as Invoke reads it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tfwright.documents.recipe import ROOT


def invoke(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "invoke", "--search-root", str(ROOT), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["inspect", "diagnose", "unbundle"])
def test_a_command_that_takes_a_file_takes_no_option_for_one(command: str, tmp_path: Path) -> None:
    (tmp_path / "--help").write_text("", "utf-8")
    done = invoke(tmp_path, command, "--help")
    assert done.returncode == 2
    assert f"'--help' is no file for 'invoke {command}'" in done.stderr


def test_a_bundle_is_written_nowhere_unless_its_file_is_named(tmp_path: Path) -> None:
    done = invoke(tmp_path, "bundle")
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "Usage: " in invoke(tmp_path, "bundle", "--help").stdout
