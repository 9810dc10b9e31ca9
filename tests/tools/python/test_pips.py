import sys
from pathlib import Path

import pytest
from tests.making import make_program

from tfwright.errors import RecipeError
from tfwright.tools.python import pips

TAG = "manylinux_2_31_x86_64"


def venv_with(folder: Path, said: str) -> Path:
    """Make what stands in for a venv: its pip says its version as it is given."""
    program = folder / "bin/python"
    program.parent.mkdir(parents=True)
    make_program(program, f"#!{sys.executable}\nprint({said!r})\n")
    return folder


@pytest.mark.medium
@pytest.mark.parametrize(
    ("own", "version", "pin"),
    [
        ("pip 18.1 from /x (python 3.6)", "3.6.15", "pip==21.3.1"),
        ("pip 20.0.2 from /x (python 3.8)", "3.8.10", "pip==21.3.1"),
        ("DEPRECATION: x\npip 19.2.3 from /x", "2.7.18", "pip==20.3.4"),
        ("pip 9.0.1 from /x (python 3.4)", "3.4.10", "pip==19.1.1"),
        ("pip 20.3.4 from /x (python 3.9)", "3.9.2", ""),
        ("pip 24.0 from /x (python 3.12)", "3.12.1", ""),
        ("something else", "3.6.15", "pip==21.3.1"),
    ],
)
def test_a_pip_that_is_too_old_is_replaced_by_one_that_runs_on_its_python(
    tmp_path: Path, own: str, version: str, pin: str
) -> None:
    home = venv_with(tmp_path / "venv", own)
    assert pips.replacement_pin(home, version, tmp_path / "log") == pin


def test_pip_is_set_apart_from_packages_whose_names_begin_like_it() -> None:
    pins = ["numpy==1.19.5", "pip-tools==6.4.0", "pip==21.3.1"]
    assert pips.split_pip(pins) == (["pip==21.3.1"], ["numpy==1.19.5", "pip-tools==6.4.0"])


@pytest.mark.parametrize(
    ("version", "pins", "remedy"),
    [
        ("3.6", (), 'Add "pip==21.3.1"'),
        ("3.8.18", ("numpy==1.19.5",), 'Add "pip==21.3.1"'),
        ("2.7", (), 'Add "pip==20.3.4"'),
        ("3.4", (), "Take package.platform out"),
        ("3.6", ("pip==20.2.4",), 'Pin "pip==21.3.1"'),
        ("3.11", ("pip==19.3",), 'Pin "pip==21.3.1"'),
        ("any", ("pip==19.3",), ""),
        ("3.6", ("pip==21.3.1",), ""),
        ("3.6", (f"pip==20.3 --hash=sha256:{'0' * 64}",), ""),
        ("3.9", (), ""),
        ("3.11.2", ("six==1.16.0",), ""),
    ],
)
def test_a_pip_that_does_not_read_a_platform_tag_is_refused(
    version: str, pins: tuple[str, ...], remedy: str
) -> None:
    pips.check_reads_platform(None, version, pins)
    if not remedy:
        pips.check_reads_platform(TAG, version, pins)
        return
    with pytest.raises(RecipeError, match=TAG) as caught:
        pips.check_reads_platform(TAG, version, pins)
    assert caught.value.remedy.startswith(remedy)
