"""The page of port and pin."""

from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.lock.command import show_pinned
from tfwright.lock.packages import Pinned
from tfwright.port import command as page
from tfwright.port.porting import Port
from tfwright.port.target import PortedPin

NEW = Path("new.toml")


def test_a_port_shows_what_must_change_first_and_counts_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pins = (
        PortedPin("patch", "0001-a.patch", "fits", "applies"),
        PortedPin("tool", "Bazel", "change", "1.14 wants 0.24.1"),
        PortedPin("test", "smoke", "look", "renamed"),
    )
    page.show_port(Port(NEW, "1" * 40, pins))
    shown = capsys.readouterr()
    states = [line.split()[0] for line in shown.out.splitlines()[:3]]
    assert states == ["change", "look", "fits"]
    assert "1 pin must change before it can be built" in shown.err
    assert "Then: invoke build --recipe new.toml --until configure" in shown.err
    assert shown.out.splitlines()[-1] == "new.toml"


def test_a_port_in_which_all_fits_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    page.show_port(Port(NEW, "1" * 40, ()))
    assert "Nothing has to change" in capsys.readouterr().err


def test_what_was_pinned_is_listed_with_the_checksum_of_bazel(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lists: dict[str, tuple[str, ...]] = {"host.requirements": ("numpy==1.14.5", "six==1.11.0")}
    changes = ("numpy 1.13.3 -> 1.14.5",)
    show_pinned(Pinned(NEW, lists, changes, "ab" * 32))
    shown = capsys.readouterr()
    assert "host.requirements: 2 packages" in shown.err
    assert "numpy 1.13.3 -> 1.14.5" in shown.err
    assert f"bazel.sha256: {'ab' * 32}" in shown.err
    assert shown.out == "new.toml\n"


def test_the_recipes_of_the_axes_are_named_to_be_pinned_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_file(tmp_path / "mine.toml", '[axes]\npython = ["3.13"]\n')
    show_pinned(Pinned(path, {}, (), ""))
    assert f"invoke pin --recipe {tmp_path}/mine-py313.toml\n" in capsys.readouterr().err
    show_pinned(Pinned(tmp_path / "mine-py313.toml", {}, (), ""))
    assert not capsys.readouterr().err
