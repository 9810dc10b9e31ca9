"""Packages kept as files."""

import sys
import zipfile
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file, make_folder, make_program

from tfwright.errors import SupplyError
from tfwright.tools import files
from tfwright.tools.python import packages

pytestmark = pytest.mark.medium

HERE = Path(sys.executable)


def small_wheel(folder: Path, further: str = "", name: str = "small", version: str = "1.0") -> Path:
    """Return a wheel that pip installs, with further lines of METADATA."""
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as content:
        content.writestr(f"{name}.py", "")
        content.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{further}",
        )
        content.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        content.writestr(f"{info}/RECORD", "")
    return wheel


def keep_small(vault: Path, further: str = "") -> str:
    """Keep that wheel in a vault; return its digest."""
    wheel = small_wheel(make_folder(vault), further)
    digest = files.sha256(wheel)
    packages.store_files({wheel: (wheel.name, digest)}, vault)
    return digest


@pytest.mark.parametrize(
    ("file", "release"),
    [
        ("Keras_Applications-1.0.8-py3-none-any.whl", ("keras-applications", "1.0.8")),
        ("python-dateutil-2.8.2.tar.gz", ("python-dateutil", "2.8.2")),
        ("functools32-3.2.3-2.tar.gz", ("functools32", "3.2.3.post2")),
        ("pytz-2018e.tar.bz2", ("pytz", "2018e")),
        ("foo-2bar-1.0.zip", ("foo-2bar", "1")),
        ("six-1.11.0-py2.py3-none-any.whl", ("six", "1.11")),
    ],
)
def test_a_file_is_known_by_the_name_and_version_that_indexes_compare(
    file: str, release: tuple[str, str]
) -> None:
    assert packages.release_of_file(file) == release
    assert packages.project_of_file(Path(file)) == release[0]


@pytest.mark.parametrize("file", ["six.pth", "six.whl", "-1.0.zip", "x-.tar.gz"])
def test_the_name_of_anything_else_is_refused(file: str) -> None:
    with fails(SupplyError, "package"):
        packages.release_of_file(file)


def test_what_is_kept_already_is_not_asked_of_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = keep_small(tmp_path)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    assert supplied(HERE, tmp_path).parent.name == digest


def test_what_is_not_kept_is_brought_and_kept_under_its_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = small_wheel(tmp_path)
    digest = files.sha256(wheel)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    vault = tmp_path / "vault"
    packages.write_page(vault)
    assert supplied(HERE, vault) == packages.package_folder(vault) / digest / wheel.name
    assert packages.stored_files(vault) == [packages.package_folder(vault) / digest / wheel.name]


@pytest.fixture
def pip(tmp_path: Path) -> Path:
    """Return a Python that can be taken away: nothing runs its pip then."""
    return make_program(tmp_path / "python", f'#!/bin/sh\nexec {HERE} "$@"\n')


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a vault with a package, which pip would find elsewhere as well."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    small_wheel(tmp_path)
    keep_small(tmp_path / "vault")
    return tmp_path / "vault"


def supplied(python: Path, vault: Path) -> Path:
    (path,) = packages.supply(python, ["small==1.0"], (vault,), vault / "log", offline_only=False)
    return path


def test_what_pip_chose_once_is_taken_without_asking_it_again(pip: Path, vault: Path) -> None:
    chosen = supplied(pip, vault)
    pip.unlink()
    assert supplied(pip, vault) == chosen


@pytest.mark.parametrize("damage", ["file", "list"])
def test_a_package_that_was_damaged_since_is_brought_again(
    pip: Path, vault: Path, damage: str
) -> None:
    chosen = supplied(pip, vault)
    digest = files.sha256(chosen)
    (record,) = packages.package_folder(vault).glob("*.list")
    damaged = {"file": chosen, "list": record}[damage]
    damaged.chmod(0o644)
    damaged.write_bytes(b"\xff\0")
    assert supplied(pip, vault) == chosen
    assert files.sha256(chosen) == digest


def test_offline_what_is_not_kept_cannot_be_had_and_pips_log_is_not_diagnosed(
    tmp_path: Path,
) -> None:
    with pytest.raises(SupplyError, match=r"No matching distribution|Could not find a ver") as seen:
        packages.supply(HERE, ["small==1.0"], (tmp_path,), tmp_path / "log", offline_only=True)
    assert seen.value.evidence.log is None


def test_an_index_that_does_not_answer_is_not_said_to_lack_a_version(tmp_path: Path) -> None:
    log = make_file(
        tmp_path / "log",
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'SSLError(1)': /simple/a/\n"
        "ERROR: Could not find a version that satisfies the requirement a (from versions: none)\n",
    )
    assert packages.complaint(log) == "its index does not answer: SSLError(1)"
