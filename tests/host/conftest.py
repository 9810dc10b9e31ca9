"""Simulated hosts: directories of small programs and files, examined by the code for real hosts."""

import shlex
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.making import make_file, make_program

from tfwright.host.place import Place
from tfwright.host.probes import Host

SIMULATED = Path(__file__).parent / "simulated"
Description = dict[str, Any]


def write_program(path: Path, answers: Mapping[str, str]) -> None:
    """Write a program that knows some command lines and what each prints; ``*`` is any other.

    It fails for a command line that it does not know.
    """
    cases = [
        f"{line if line == '*' else shlex.quote(line)}) printf '%s\\n' "
        f"{shlex.quote(text.strip())} ;;"
        for line, text in answers.items()
    ]
    lines = ["#!/bin/sh", 'case "$*" in', *cases, "*) exit 64 ;;", "esac", ""]
    make_program(path, "\n".join(lines))


def lay_out(root: Path, description: Description) -> Host:
    """Make a host's directory from its description; every host but a container has sudo."""
    if description.get("sudo", True):
        write_program(root / "usr/bin/sudo", {})
    for path, answers in description.get("programs", {}).items():
        write_program(root / path.lstrip("/"), answers)
    for path, text in description.get("files", {}).items():
        make_file(root / path.lstrip("/"), text)
    return Host(Place(root, description.get("env", {})))


@pytest.fixture
def described() -> Callable[[str], Description]:
    """Return a function that reads the description of a simulated host."""

    def read(name: str) -> Description:
        return tomllib.loads((SIMULATED / f"{name}.toml").read_text("utf-8"))

    return read


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Description], Host]:
    """Return a function that plays a host from a description."""
    return lambda description: lay_out(tmp_path / "host", description)
