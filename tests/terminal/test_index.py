"""What `invoke index` prints."""

from pathlib import Path

import pytest
from tests.nightly.wheels import write_wheel

from tfwright.nightly.index import write
from tfwright.terminal import index as page

URL = "http://127.0.0.1:8080/"


def printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what is printed for the wheels in ``packages`` of a folder."""
    page.show_use(write.refresh(folder), URL)
    return capsys.readouterr().out


def test_the_configuration_names_the_newest_wheel_with_a_local_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for version in ("1.0+cpu", "1.1+cpu", "1.2"):
        write_wheel(tmp_path / "packages", version=version)
    text = printed(tmp_path, capsys)
    assert "demo==1.1+cpu" in text
    assert '    demo = { index = "tfwright" }' in text


def test_without_a_local_version_the_configuration_asks_for_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_wheel(tmp_path / "packages")
    text = printed(tmp_path, capsys)
    assert "Give wheels a local version and pin it" in text
    assert "==" not in text


def test_an_empty_index_still_says_how_it_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"extra-index-url = {URL}simple/" in printed(tmp_path, capsys)
