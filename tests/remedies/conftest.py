import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.making import make_folder, make_program

from tfwright.lock import packages
from tfwright.tools.process import dialogue
from tfwright.tools.python import resolving


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a shorter silence of ./configure for a question."""
    monkeypatch.setattr(dialogue, "SETTLE_SECONDS", 0.01)
    monkeypatch.setattr(dialogue, "QUIET_SECONDS", 0.1)


@pytest.fixture
def quick_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pip know one version of each package, and no Bazel be looked for."""

    def resolve(_: Path, __: str, wanted: list[str], *___: object) -> tuple[str, ...]:
        names = [re.split(r"[<>=]", line)[0] for line in wanted]
        return tuple(f"{name}==1.19.5" for name in sorted(set(names)))

    monkeypatch.setattr(resolving, "resolve", resolve)
    monkeypatch.setattr(packages, "_pin_bazel", lambda *_: "")


@pytest.fixture
def worded(recipe_file: Path, tmp_path: Path) -> Path:
    """Return a recipe whose path is two words of a shell."""
    path = tmp_path / "my recipes/small.toml"
    path.parent.mkdir()
    return recipe_file.rename(path)


@pytest.fixture
def named(recipe: Path) -> str:
    """Return the option that names the file of a test's `recipe`."""
    return f"--recipe {shlex.quote(str(recipe))}"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that puts programs first on PATH, each from its shell script."""
    folder = make_folder(tmp_path / "bin")

    def install(**scripts: str) -> None:
        for name, script in scripts.items():
            make_program(folder / name, f"#!/bin/sh\n{script}\n")

    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return install


@pytest.fixture
def no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave on PATH what `programs` installs, and nothing else."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
