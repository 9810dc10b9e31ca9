"""What `tfwright init` writes."""

import re
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file

from tfwright.documents import host_file
from tfwright.documents.filesystem import HOST_FILE
from tfwright.errors import HostError
from tfwright.init import command


def test_each_setting_that_the_host_file_proposes_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command.create_directory(str(tmp_path))
    file = tmp_path / HOST_FILE
    proposed = file.read_text("utf-8")
    file.write_text(re.sub(r'(?m)^# (?=\w+ = |"|\[)', "", proposed), "utf-8")
    monkeypatch.setenv("TFWRIGHT_HOST_FILE", str(file))
    settings = host_file.read()
    assert settings.model_fields_set == {"build_out", "jobs", "drop", "mirrors", "pythons"}
    assert settings.jobs == 8
    assert [*settings.pythons] == ["3.6"]


@pytest.mark.parametrize("name", ["with blank", "Größe"])
def test_a_directory_below_which_no_build_runs_is_named_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    command.show(command.create_directory(str(tmp_path / name)))
    assert "set build_out" in capsys.readouterr().out
    command.show(command.create_directory(str(tmp_path / "plain")))
    assert "build_out" not in capsys.readouterr().out


def test_a_directory_that_cannot_be_created_is_named_with_the_reason(tmp_path: Path) -> None:
    make_file(tmp_path / "taken", "")
    with fails(HostError, tmp_path / "taken/recipes", "Not a directory"):
        command.create_directory(str(tmp_path / "taken"))
