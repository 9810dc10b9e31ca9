"""The venv that `python3 tasks.py` makes for itself."""

import hashlib
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from tests.making import Read, make_file, make_program

from tfwright import bootstrap
from tfwright.errors import HostError, SupplyError


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"\0" * 64, b"{"])
def test_a_damaged_mark_makes_the_venv_again(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "requirements.txt").write_text("six==1.11.0\n", "utf-8")
    (tmp_path / "tfwright-requirements").write_bytes(content)
    assert not bootstrap._ready(tmp_path, tmp_path, "requirements.txt")


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 1\n", "#!/no/such/python\n"])
def test_a_venv_of_another_host_is_made_again(tmp_path: Path, script: str) -> None:
    text = "six==1.11.0\n"
    (tmp_path / "requirements.txt").write_text(text, "utf-8")
    (tmp_path / "tfwright-requirements").write_text(hashlib.sha256(text.encode()).hexdigest())
    make_program(tmp_path / "bin/python", script)
    assert not bootstrap._ready(tmp_path, tmp_path, "requirements.txt")
    make_program(tmp_path / "bin/python", "#!/bin/sh\n")
    assert bootstrap._ready(tmp_path, tmp_path, "requirements.txt")


@pytest.mark.parametrize("option", ["--unpack", "--lacking"])
def test_packages_in_a_folder_from_another_host_are_installed_without_an_index(
    tmp_path: Path, option: str
) -> None:
    make_file(tmp_path / "tool/six-1.11.0-py2.py3-none-any.whl", b"six")
    with bootstrap._bundled_packages(["bundle", option, str(tmp_path)]) as variables:
        assert variables["PIP_NO_INDEX"] == "1"
        (wheel,) = Path(variables["PIP_FIND_LINKS"]).iterdir()
        assert wheel.read_bytes() == b"six"


def test_a_folder_without_packages_leaves_pip_its_index(tmp_path: Path) -> None:
    arguments = ["bundle", "--lacking", str(tmp_path)]
    with bootstrap._bundled_packages(arguments) as variables:
        assert variables == {}


def test_a_checkout_that_cannot_be_set_up_blames_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, err: Read
) -> None:
    failed = CompletedProcess[bytes]((), 1)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(SystemExit) as caught:
        bootstrap._install(tmp_path, tmp_path / "requirements.txt", {})
    assert caught.value.code == HostError.exit_status
    output = err()
    assert output.startswith("Failed: pip could not install requirements.txt")


def test_a_python_without_ensurepip_is_answered_with_the_package_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, err: Read
) -> None:
    # As importing it fails where Debian's python3-venv is not installed.
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(SystemExit) as caught:
        bootstrap._make_venv(tmp_path / ".venv")
    assert caught.value.code == HostError.exit_status
    assert "apt-get install python3" in err()
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize(
    "fault", [OSError(28, "No space left on device"), subprocess.CalledProcessError(1, "ensurepip")]
)
def test_a_full_disk_is_not_taken_for_a_missing_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, err: Read, fault: Exception
) -> None:
    def create(*_: object, **__: object) -> None:
        raise fault

    make_file(tmp_path / "requirements.txt", "")
    monkeypatch.setattr("venv.create", create)
    with pytest.raises(SystemExit) as caught:
        bootstrap.hand_over(str(tmp_path), ["build"])
    assert caught.value.code == HostError.exit_status
    output = err()
    assert "MB free on the disk" in output
    assert "apt-get" not in output


def test_a_checkout_that_is_set_up_need_not_be_writable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A directory in its place fails as a read-only file system does, for root too.
    (tmp_path / ".venv.lock").mkdir()
    started: list[str] = []
    monkeypatch.setattr(bootstrap, "_ready", lambda *_: True)
    monkeypatch.setattr("os.execve", lambda _, command, __: started.extend(command))
    bootstrap.hand_over(str(tmp_path), ["build"])
    assert started[-1] == "build"


def test_a_damaged_bundle_has_the_status_of_an_input(tmp_path: Path) -> None:
    bundle = make_file(tmp_path / "r.tar", b"x" * 1024)
    with pytest.raises(SystemExit) as caught:
        bootstrap._extract_packages(str(bundle), tmp_path)
    assert caught.value.code == SupplyError.exit_status
