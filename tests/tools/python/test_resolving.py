import ensurepip
import os
import platform
import shutil
import sys
from pathlib import Path

import pytest
from tests.making import Serve, make_folder, make_program
from tests.tools.python.test_packages import small_wheel

from tfwright.tools.python import pips, resolving, venv

HERE, VERSION = Path(sys.executable), platform.python_version()
PIP = f"""\
#!{sys.executable}
import json, sys

command, *options = sys.argv[4:]
if command == "--version":
    print("pip OWN from /x")
elif command == "list":
    print("DEPRECATION: Python 2.7 reached the end of its life")
    has = [{{"name": "pip", "version": "21.3.1"}}, {{"name": "setuptools", "version": "40"}}]
    if __import__("os").path.exists("INSTALLED") and "prefer" in open("INSTALLED").read():
        has += [{{"name": "wheel", "version": "0.37.1"}}]
    print(json.dumps(has))
elif command == "install":
    wanted = open(options[-1]).read().split()
    for option in options:
        if option.startswith("--report="):
            made = {{"name": "wheel", "version": "0.37.1"}}
            json.dump({{"install": [{{"metadata": made}}]}}, open(option[9:], "w"))
            options.remove(option)
    print(*options[:-2], *wanted, file=open("INSTALLED", "a"))
    sys.exit("No matching distribution found for " + wanted[0] if wanted[0] == "ABSENT" else 0)
"""
"""Stands in for a pip: notes what it is to install, and lists what it would have installed."""
CHOOSING = "--prefer-binary --no-compile"


class Venv:
    """What the pip of a venv says of itself, lacks, and is asked for."""

    def __init__(self, folder: Path) -> None:
        self.own = "18.1"
        self.absent = ""
        self.installed = folder / "installed"

    def create(self, _: Path, __: str, home: Path, ___: Path) -> None:
        program = home / "bin/python"
        program.parent.mkdir(parents=True)
        text = PIP.replace("OWN", self.own).replace("ABSENT", self.absent)
        make_program(program, text.replace("INSTALLED", str(self.installed)))


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Venv:
    made = Venv(tmp_path)
    monkeypatch.setattr(venv, "create", made.create)
    return made


@pytest.mark.medium
@pytest.mark.parametrize(
    ("own", "version", "wanted", "installed", "pins"),
    [
        (
            "18.1",
            "3.6.15",
            ["wheel"],
            ["pip==21.3.1", f"{CHOOSING} wheel pip==21.3.1"],
            ("pip==21.3.1", "wheel==0.37.1"),
        ),
        (
            "22.0.4",
            "3.7.16",
            ["wheel"],
            [pips.DRY, f"{CHOOSING} --dry-run wheel"],
            ("wheel==0.37.1",),
        ),
        (
            "22.0.4",
            "3.7.16",
            ["wheel", "pip<22"],
            ["pip<22", f"{CHOOSING} wheel pip<22"],
            ("pip==21.3.1", "wheel==0.37.1"),
        ),
        (
            "20.3.4",
            "2.7.18",
            ["wheel"],
            [f"{CHOOSING} --use-feature=2020-resolver wheel"],
            ("wheel==0.37.1",),
        ),
    ],
)
def test_the_pip_that_chooses_is_a_pin_where_the_target_pythons_own_is_too_old(  # noqa: PLR0913, PLR0917
    made: Venv,
    tmp_path: Path,
    own: str,
    version: str,
    wanted: list[str],
    installed: list[str],
    pins: tuple[str, ...],
) -> None:
    made.own = own
    found = resolving.resolve(Path("p"), version, wanted, tmp_path / "pin.log")
    assert found == pins
    assert made.installed.read_text("utf-8").splitlines() == installed


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Serve) -> Path:
    """Serve an index that says nothing but the names of its files."""
    simple = make_folder(tmp_path / "simple")
    monkeypatch.setenv("PIP_INDEX_URL", serve(simple))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    return simple


def offer(index: Path, name: str, version: str, *metadata: str) -> None:
    folder = make_folder(index / name)
    small_wheel(folder, "".join(f"{line}\n" for line in metadata), name, version)


@pytest.mark.slow
def test_an_index_that_knows_no_pythons_gives_the_newest_that_runs_on_the_target(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = Path(ensurepip.__file__).with_name("_bundled")
    wheels = list(bundled.glob("pip-*.whl"))
    if not wheels:
        pytest.skip(f"{bundled} holds no wheel of pip")
    (index / "pip").mkdir()
    shutil.copy(wheels[0], index / "pip")
    pip = f"pip=={ensurepip.version()}"
    # To this table the running Python's pip is an old one.
    monkeypatch.setattr(pips, "ENOUGH", (99, 0))
    monkeypatch.setattr(pips, "NEWER", ensurepip.version())
    offer(index, "later", "1.0", "Requires-Dist: sooner", "Requires-Python: >=3")
    offer(index, "later", "2.0", "Requires-Python: >=9")
    # The newest `sooner` is for this Python, and what it needs is not.
    offer(index, "sooner", "1.0", 'Requires-Dist: absent; python_version < "3"')
    offer(index, "sooner", "2.0", "Requires-Dist: later>=2")
    log = tmp_path / "log"
    found = resolving.resolve(HERE, VERSION, ["later"], log)
    assert found == ("later==1.0", pip, "sooner==1.0")
    # A build installs exactly these, and misses none.
    venv.make_venv(HERE, found, (tmp_path / "store",), offline=False, log=log)


TENSORFLOW_1_7 = (
    "absl-py>=0.1.6",
    "astor>=0.6.0",
    "gast>=0.2.0",
    "grpcio>=1.8.6",
    "numpy>=1.13.3",
    "protobuf>=3.4.0",
    "six>=1.10.0",
    "tensorboard>=1.7.0,<1.8.0",
    "termcolor>=1.1.0",
    "wheel",
)


@pytest.mark.real
def test_what_tensorflow_1_7_needs_is_pinned_and_installed_for_python_3_6(tmp_path: Path) -> None:
    interpreter = os.environ.get("TFWRIGHT_PYTHON36")
    if not interpreter:
        pytest.skip("TFWRIGHT_PYTHON36 names no Python 3.6")
    log = tmp_path / "log"
    found = resolving.resolve(Path(interpreter), "3.6.15", TENSORFLOW_1_7, log)
    # Packages that later Pythons bring: only the target Python knows that it needs them.
    names = {pin.partition("==")[0] for pin in found}
    assert {"dataclasses", "importlib-metadata", "pip"} <= names
    venv.make_venv(Path(interpreter), found, (tmp_path,), offline=False, log=log)
