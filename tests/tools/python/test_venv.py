"""The target Python's venv: exact pins, made once, whole or made again."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_program
from tests.tools.python.test_packages import keep_small

from tfwright.errors import HostError, RecipeError, SupplyError
from tfwright.tools.python import venv

pytestmark = pytest.mark.medium

HERE = Path(sys.executable)


@pytest.mark.parametrize(
    "line",
    [
        "numpy",
        "numpy>=1.14",
        "numpy==1.*",
        "-r other.txt",
        "numpy==1.14.5 --index-url=http://x",
        "git+https://x/y",
    ],
)
def test_what_is_no_exact_pin_is_refused(tmp_path: Path, line: str) -> None:
    with fails(RecipeError, "exact"):
        made_of(HERE, line, store=tmp_path, offline=False)


def test_an_offline_build_without_the_venv_says_what_to_run(tmp_path: Path) -> None:
    with fails(SupplyError, "offline"):
        made_of(HERE, "numpy==1.14.5", store=tmp_path)


def test_an_interpreter_that_is_not_there_is_the_hosts_fault(tmp_path: Path) -> None:
    with fails(HostError, "cannot be run"):
        made_of(tmp_path / "python3.6", store=tmp_path, offline=False)


def made_of(python: Path, *pins: str, store: Path, offline: bool = True) -> Path:
    return venv.make_venv(python, pins, (store,), offline=offline, log=store / "log")


def wrapper(folder: Path, rest: str) -> Path:
    return make_program(folder / "python3.9", f"#!/bin/sh\necho warning: no cgroups >&2\n{rest}\n")


def test_what_a_wrapper_prints_is_not_taken_for_the_version(
    tmp_path: Path, quick_python: Path
) -> None:
    python = wrapper(tmp_path, f'exec {quick_python} "$@"')
    made = made_of(python, store=tmp_path, offline=False)
    name = made.relative_to(tmp_path / "pythons").parts[0]
    assert name.startswith(f"{platform.python_version()}-")


@pytest.mark.slow
@pytest.mark.parametrize("planted", [False, True], ids=["changed", "planted"])
def test_a_venv_that_changed_on_disk_is_made_again(tmp_path: Path, *, planted: bool) -> None:
    made = made_of(HERE, store=tmp_path)
    home = made.parents[1]
    assert not venv.is_damaged(home)
    (packages_folder,) = home.glob("lib/python*/site-packages")
    victim = packages_folder / ("sitecustomize.py" if planted else "pip/__init__.py")
    with victim.open("a", encoding="utf-8") as stream:
        stream.write("print('EVIL')\n")
    assert venv.is_damaged(home)
    made_of(HERE, store=tmp_path)
    assert not venv.is_damaged(home)
    assert not victim.exists() or "EVIL" not in victim.read_text("utf-8")


def test_a_venv_is_made_once_and_again_when_it_is_not_whole(
    tmp_path: Path, quick_python: Path
) -> None:
    made = made_of(quick_python, store=tmp_path)
    stamp = made.lstat().st_mtime_ns
    assert made_of(quick_python, store=tmp_path).lstat().st_mtime_ns == stamp
    (made.parents[1] / venv.DONE).unlink()
    again = made_of(quick_python, store=tmp_path)
    assert again == made
    assert again.lstat().st_mtime_ns > stamp


def test_a_store_that_is_reached_by_a_link_gives_the_same_path(
    tmp_path: Path, quick_python: Path
) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to("store", target_is_directory=True)
    made = made_of(quick_python, store=tmp_path / "link")
    assert made.is_relative_to(tmp_path.resolve() / "store")
    assert made_of(quick_python, store=tmp_path / "store") == made


@pytest.mark.slow
def test_a_digest_that_is_wanted_later_is_compared_and_the_path_stays(
    tmp_path: Path, quick_python: Path
) -> None:
    digest = keep_small(tmp_path)

    def made(line: str) -> tuple[Path, int]:
        path = made_of(quick_python, line, store=tmp_path)
        return path, path.lstat().st_mtime_ns

    first = made("small==1.0")
    assert made(f"small==1.0 --hash=sha256:{digest}") == first
    with fails(SupplyError, "DO NOT MATCH THE HASHES", "checksum of its pin"):
        made(f"small==1.0 --hash=sha256:{'0' * 64}")
    path, when = made("small==1.0")
    assert path == first[0]
    assert when > first[1]


def test_a_pin_that_another_one_needs_must_not_be_missing(
    tmp_path: Path, quick_python: Path
) -> None:
    keep_small(tmp_path, "Requires-Dist: absent>=2\n")
    with fails(RecipeError, "not installed"):
        made_of(quick_python, "small==1.0", store=tmp_path)


@pytest.mark.real
@pytest.mark.parametrize("version", ["3.6", "3.7"])
def test_a_real_old_python_gets_exactly_the_pins(tmp_path: Path, version: str) -> None:
    interpreter = os.environ.get(f"TFWRIGHT_PYTHON{version.replace('.', '')}")
    if not interpreter:
        pytest.skip(f"TFWRIGHT_PYTHON{version.replace('.', '')} names no Python {version}")
    pins = [
        "numpy==1.14.5" if version == "3.6" else "numpy==1.16.6",
        "six==1.16.0",
        "wheel==0.37.1",
        "setuptools==59.6.0",
    ]
    made = made_of(Path(interpreter), *pins, store=tmp_path, offline=False)
    said = subprocess.run(
        [made, "-m", "pip", "freeze", "--all"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(pins) <= set(said)
    assert made_of(Path(interpreter), *pins, store=tmp_path) == made
    with pytest.raises(
        SupplyError,
        match=r"No matching distribution found for numpy==9\.9\.9|Could not find a version",
    ):
        made_of(Path(interpreter), "numpy==9.9.9", store=tmp_path, offline=False)
