import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.making import make_program

from tfwright.documents.host_file import HostFile
from tfwright.host import pythons
from tfwright.tools.process.command import Command, RunningContainer, inside_container


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a host on which no Python can be found by itself."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CONDA_EXE", raising=False)
    return tmp_path


def interpreter(path: Path, version: str) -> Path:
    """Write a program that answers as an interpreter of a version does."""
    return make_program(path, f"#!/bin/sh\necho {version}\n")


def test_any_python_is_the_one_that_runs_tfwright_outside_of_its_venv() -> None:
    found = pythons.find("any", HostFile())
    assert found == pythons.running_python()
    assert pythons.version_of(found) == ".".join(map(str, sys.version_info[:3]))


def test_the_same_path_in_an_image_is_another_python() -> None:
    container = Mock(spec=RunningContainer)
    container.name = "sha256:image"
    container.command.return_value = Command(("echo", "3.6.9"), Path("/"))
    outside = pythons.version_of(pythons.running_python())
    with inside_container(container):
        assert pythons.version_of(pythons.running_python()) == "3.6.9"
    assert pythons.version_of(pythons.running_python()) == outside


def test_a_python_that_is_nowhere_is_not_found(nowhere: Path) -> None:
    assert not (nowhere / "bin").exists()
    assert pythons.find("3.6", HostFile()) is None


@pytest.mark.usefixtures("nowhere")
def test_a_directory_that_this_user_may_not_read_has_no_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(_: Path, __: str) -> list[Path]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "glob", refused)
    assert not isinstance(pythons.find("3.6", HostFile()), Path)


@pytest.mark.parametrize(("version", "taken"), [("3.6.15", True), ("3.7.16", False)])
def test_the_host_file_decides_even_against_one_on_path(
    nowhere: Path, version: str, *, taken: bool
) -> None:
    interpreter(nowhere / "bin" / "python3.6", "3.6.8")
    named = interpreter(nowhere / "own" / "python", version)
    # Where it names another version, no guess takes its place.
    found = pythons.find("3.6", HostFile(pythons={"3.6": named}))
    assert found == (named if taken else None)


def test_an_interpreter_of_another_version_than_its_name_says_is_passed_over(nowhere: Path) -> None:
    interpreter(nowhere / "bin" / "python3.6", "3.60.0")
    real = interpreter(nowhere / "pyenv" / "versions" / "3.6.15" / "bin" / "python", "3.6.15")
    assert pythons.find("3.6", HostFile()) == real


def test_the_newest_patch_release_in_pyenv_is_taken_by_number(nowhere: Path) -> None:
    for version in ("3.6.9", "3.6.15", "3.60.1"):
        interpreter(nowhere / "pyenv" / "versions" / version / "bin" / "python", version)
    found = pythons.find("3.6", HostFile())
    assert found
    assert pythons.version_of(found) == "3.6.15"


def test_pyenvs_shims_are_no_interpreters(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter(nowhere / "pyenv" / "shims" / "python3.6", "3.6.15")
    monkeypatch.setenv("PATH", str(nowhere / "pyenv" / "shims"))
    assert pythons.find("3.6", HostFile()) is None


def test_condas_environments_are_searched(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDA_EXE", str(nowhere / "conda" / "bin" / "conda"))
    found = interpreter(nowhere / "conda" / "envs" / "old" / "bin" / "python3.6", "3.6.13")
    assert pythons.find("3.6", HostFile()) == found


def test_an_interpreter_that_fails_has_no_version(tmp_path: Path) -> None:
    broken = make_program(tmp_path / "python3.6", "#!/bin/sh\nexit 1\n")
    assert pythons.version_of(broken) == ""


def test_the_parts_that_a_distribution_packs_apart_are_looked_for() -> None:
    headers, pip, *installed = pythons.installed_parts(pythons.running_python()).value.split(", ")
    assert [name.removeprefix("no ") for name in installed] == ["numpy", "wheel"]
    assert headers.removeprefix("no ") == "headers"
    assert pip.removeprefix("no ") == "pip"


def test_an_interpreter_that_does_not_run_has_no_parts_to_tell(tmp_path: Path) -> None:
    assert not pythons.installed_parts(tmp_path / "python3.6")
