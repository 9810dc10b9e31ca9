"""From a recipe with debug information to a breakpoint in C++, as docs/debugging.md goes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.documents.recipe import RECIPES, ROOT

pytestmark = pytest.mark.real

PROGRAM = """\
import tensorflow_demo as demo
demo.matmul(demo.constant([[1, 2], [3, 4]]), demo.constant([[5, 6], [7, 8]]))
"""


def recipe_with(flags: str, folder: Path) -> Path:
    """Write the demo recipe with other flags of Bazel."""
    text = (RECIPES / "demo.toml").read_text("utf-8").partition("[verified]")[0]
    text = text.replace('flags = ["--config=opt"]', f"flags = {flags}")
    return make_file(folder / "debug.toml", text.replace("size = 1_000_000", "size = 20_000_000"))


def ran(*argv: str, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        argv,
        cwd=cwd,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "flags",
    [
        '["--config=opt", "--copt=-g", "--strip=never"]',
        '["--compilation_mode=dbg", "--strip=never"]',
    ],
)
def test_a_breakpoint_by_file_and_line_stops_in_the_wheel_and_shows_the_source(
    tmp_path: Path, flags: str
) -> None:
    if not shutil.which("gdb"):
        pytest.skip("gdb is not installed")
    settings = make_file(tmp_path / "host.toml", f'build_out = "{tmp_path}/out"\n')
    build = ("-m", "invoke", "build", "--until", "seal", "--recipe")
    path = str(recipe_with(flags, tmp_path))
    ran(sys.executable, *build, path, cwd=ROOT, TFWRIGHT_HOST_FILE=str(settings))
    own = tmp_path / "out/debug"
    (wheel,) = (own / "dist/sealed").glob("*.whl")
    venv = tmp_path / "venv"
    ran(sys.executable, "-m", "venv", str(venv), cwd=tmp_path)
    install = ("-m", "pip", "install", "--no-index", "--no-deps", str(wheel))
    ran(str(venv / "bin/python"), *install, cwd=tmp_path)
    commands = ("set breakpoint pending on", "break matrix.cc:14", "run", "info source", "list")
    # In the tree: the compiler's own directory is /proc/self/cwd.
    said = ran(
        "gdb",
        "-q",
        "-nx",
        "-batch",
        *(word for command in commands for word in ("-ex", command)),
        "--args",
        str(venv / "bin/python"),
        "-c",
        PROGRAM,
        cwd=own / "tree",
    )
    assert "Breakpoint 1, tensorflow::MatMul (left=" in said
    assert f"Located in {own}/tree/tensorflow/core/kernels/matrix.cc" in said
    assert "const float factor = left.values" in said
