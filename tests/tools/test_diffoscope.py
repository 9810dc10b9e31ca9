from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_program

from tfwright.errors import HostError
from tfwright.wheel.compare import comparison


def test_it_is_given_both_files_by_full_path_and_its_status_is_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_program(
        tmp_path / "diffoscope", f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/asked\nexit 1\n'
    )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.chdir(tmp_path)
    assert comparison.run_diffoscope(Path("--help.whl"), tmp_path / "b.whl", as_json=False) == 1
    assert (tmp_path / "asked").read_text("utf-8").split() == [
        f"{tmp_path}/--help.whl",
        f"{tmp_path}/b.whl",
    ]
    comparison.run_diffoscope(Path("--help.whl"), tmp_path / "b.whl", as_json=True)
    assert (tmp_path / "asked").read_text("utf-8").split()[:2] == ["--json", "-"]


def test_a_host_without_it_is_told_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with fails(HostError, "not installed"):
        comparison.run_diffoscope(tmp_path / "a.whl", tmp_path / "b.whl", as_json=False)
