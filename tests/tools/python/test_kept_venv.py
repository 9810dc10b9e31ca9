"""Whether a venv that was made earlier is what a build wants now."""

from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.tools import files, trees
from tfwright.tools.python import packages, venv

ONE, TWO = "1" * 64, "2" * 64
PINNED = f"six==1.11.0 --hash=sha256:{ONE}"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a venv with one package, which was made from a known file."""
    home = tmp_path / "pythons" / "3.9.1-0123456789ab"
    files.write(home / "bin/python", "", 0o755)
    files.write(home / "lib/six.py", "ANSWER = 42\n")
    files.write(home / venv.DONE, f"{PINNED}\n")
    files.write(venv._digest_file(home), f"{trees.content_digest(home)}\n")
    return home


@pytest.mark.parametrize(
    ("requirement", "holds"),
    [
        (PINNED, True),
        ("six==1.11.0", True),
        (f"{PINNED} --hash=sha256:{TWO}", True),
        (f"six==1.11.0 --hash=sha256:{TWO}", False),
        (f"numpy==1.14.5 --hash=sha256:{ONE}", False),
    ],
)
def test_a_venv_is_kept_if_it_was_made_from_a_file_that_is_wanted(
    home: Path,
    requirement: str,
    holds: bool,  # noqa: FBT001 a case of the table above
) -> None:
    assert venv._is_usable(home, [requirement]) is holds


def test_a_venv_that_changed_is_not_kept(home: Path) -> None:
    (home / "lib/six.py").write_text("ANSWER = 43\n", "utf-8")
    assert not venv._is_usable(home, [PINNED])


@pytest.mark.parametrize("missing", [venv.DONE, "bin/python"])
def test_half_a_venv_is_not_kept(home: Path, missing: str) -> None:
    (home / missing).unlink()
    assert not venv._is_usable(home, [PINNED])


def test_every_pin_is_noted_with_the_file_that_pip_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_file(tmp_path / "Keras_Preprocessing-1.0.5-py2.py3-none-any.whl", b"a wheel")
    monkeypatch.setattr(packages, "download", lambda *_: [wheel])
    monkeypatch.setattr(packages, "run_pip", lambda *_: None)
    noted = venv._install(tmp_path, ["keras-preprocessing==1.0.5"], tmp_path / "log", ())
    assert noted == [f"keras-preprocessing==1.0.5 --hash=sha256:{files.sha256(wheel)}"]
