from pathlib import Path

import pytest
from tests.failing import fails

from tfwright.documents import filesystem, host_file
from tfwright.documents.host_file import HostFile
from tfwright.documents.toml import load
from tfwright.errors import RecipeError


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate `docker run --user 12345`: an account without a name and without a home."""

    def unknown(*_: object) -> None:
        raise KeyError("uid not found")

    for name in ("HOME", "LOGNAME", "USER", "LNAME", "USERNAME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("TFWRIGHT_HOST_FILE", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.setattr("pwd.getpwnam", unknown)


@pytest.mark.usefixtures("nobody")
def test_an_account_without_home_and_name_has_defaults() -> None:
    assert filesystem.home() == filesystem.HOMELESS
    assert filesystem.account_name().isdecimal()
    assert host_file.read() == HostFile()


@pytest.mark.usefixtures("nobody")
def test_a_home_that_nobody_has_is_refused_in_the_host_file(tmp_path: Path) -> None:
    file = tmp_path / "host.toml"
    for value in ("~nosuch/out", "~/out"):
        file.write_text(f'build_out = "{value}"\n')
        with fails(RecipeError, "absolute"):
            load(file, HostFile)


@pytest.mark.parametrize("home", ["/", "//", ""])
def test_a_home_that_is_the_root_of_the_disk_is_no_part_of_every_path(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", home)
    assert filesystem.without_home("/usr/bin: no") == "/usr/bin: no"
