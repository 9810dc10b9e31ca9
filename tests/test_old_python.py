"""The answer to a Python that is too old."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.making import make_program

from tfwright import old_python
from tfwright.documents.recipe import ROOT

pytestmark = pytest.mark.medium


@pytest.mark.parametrize("version", ["2.7.18", "3.6.15", "3.8.18", "3.10.13"])
def test_an_old_python_is_answered_with_the_line_to_type(version: str, tmp_path: Path) -> None:
    python = Path.home() / f".pyenv/versions/{version}/bin/python"
    if not python.exists():
        pytest.skip(f"there is no Python {version} here")
    tasks = os.path.relpath(ROOT / "tasks.py", tmp_path)
    make_program(tmp_path / "python3.12", "#!/bin/sh\n")
    done = subprocess.run(
        [python, tasks, "match", "--gpu", "RTX 3090"],
        cwd=tmp_path,
        env={"PATH": str(tmp_path), "PYENV_ROOT": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "needs Python 3.11 or newer" in done.stderr
    assert done.stderr.endswith(f"    python3.12 {tasks} match --gpu 'RTX 3090'\n")


@pytest.fixture
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let root have no program but those of a directory, which is empty yet; return it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path


@pytest.mark.parametrize(
    ("programs", "start"),
    [
        ((), "curl -LsSf https"),
        (("apt-get",), "apt-get update && apt-get install -y curl && curl -LsSf https"),
        (("apt-get", "wget"), "wget -qO- https"),
        (("apt-get", "wget", "curl"), "curl -LsSf https"),
        (("apt-get", "uv"), "uv run --no-project --python 3.13 python tasks.py"),
    ],
)
def test_the_line_for_an_old_python_uses_what_the_system_has(
    programs: tuple[str, ...], start: str, bare_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in programs:
        (bare_path / name).touch(0o755)
    monkeypatch.setattr(old_python, "_system", lambda: "debian 11")
    line = old_python.message(["tasks.py", "build"]).splitlines()[-1].strip()
    assert line.startswith(start)
    assert line.endswith("--no-project --python 3.13 python tasks.py build")


@pytest.mark.usefixtures("bare_path")
@pytest.mark.parametrize(("user", "sudo"), [(0, ""), (1000, "sudo ")])
def test_the_line_for_an_old_python_asks_for_root_only_where_it_is_not(
    user: int, sudo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_python, "_system", lambda: "ubuntu 22.04")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    line = f"    {sudo}apt-get update && {sudo}apt-get install -y python3.11"
    assert line in old_python.message(["tasks.py"])


def test_a_shim_that_starts_no_python_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As pyenv's shims of versions that are installed and not chosen.
    programs = {
        "shims/python3.13": "exit 127",
        "usr/python3.13": "exit 1",
        "pyenv/versions/3.12.1/bin/python3.12": "exit 0",
    }
    for name, does in programs.items():
        make_program(tmp_path / name, f"#!/bin/sh\n{does}\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/shims:{tmp_path}/usr")
    monkeypatch.setenv("PYENV_ROOT", f"{tmp_path}/pyenv")
    shown = old_python.message(["tasks.py", "build"])
    assert shown.endswith(f"    {tmp_path}/pyenv/versions/3.12.1/bin/python3.12 tasks.py build")
