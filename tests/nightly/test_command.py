"""Commands of a build host, as a user types them."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.making import Read, change_text
from tests.nightly.wheels import write_wheel
from tests.remedies.following import CommandLine

from tfwright.documents.recipe import ROOT

pytestmark = pytest.mark.medium


@pytest.fixture
def foreign(nightly_file: Path, recipe_file: Path, tmp_path: Path) -> Path:
    """Write a nightly.toml of a recipe of another system; return its directory."""
    change_text(recipe_file, 'system = "any"', 'system = "Darwin"')
    # A full disk would be said first.
    nightly_file.write_text(
        f'directory = "{tmp_path}/host"\n[retention]\nfree = 0\n'
        f'[[recipe]]\nname = "{recipe_file}"\n',
        "utf-8",
    )
    return tmp_path / "host"


@pytest.mark.usefixtures("foreign")
def test_a_night_says_what_this_host_cannot_build_and_why(shell: CommandLine, out: Read) -> None:
    shell.succeeds("invoke nightly --json")
    outcome = json.loads(out())
    assert list(outcome["verdicts"].values()) == ["blocked"]
    (why,) = outcome["details"].values()
    assert why.startswith("check: this host is ")


def test_a_dry_run_of_a_night_changes_nothing(shell: CommandLine, foreign: Path, out: Read) -> None:
    shell.succeeds("invoke nightly --dry-run --json")
    (row,) = json.loads(out())
    assert row["due"] is False
    assert row["why"].startswith("blocked: this host is ")
    assert not (foreign / "site").exists()


@pytest.mark.usefixtures("nightly_directory")
def test_a_watch_says_how_many_notices_it_sent(shell: CommandLine, err: Read) -> None:
    shell.succeeds("invoke nightly --watch")
    assert err() == "0 notices sent\n"


def test_the_configuration_of_a_web_server_is_printed_and_not_installed(
    shell: CommandLine, tmp_path: Path, out: Read
) -> None:
    wheel = write_wheel(tmp_path / "wheels")
    command = f"invoke index --folder {wheel.parent} --nginx wheels.example"
    shell.succeeds(f"{command} --port 81")
    printed = out()
    assert "server_name wheels.example;" in printed
    assert "listen 81" in printed
    assert str(wheel.parent) in printed
    assert [path.name for path in wheel.parent.iterdir()] == [wheel.name]


def test_an_index_is_served_until_ctrl_c(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "wheels", version="1.0+cu118")
    command = [sys.executable, "-m", "invoke", "--search-root", str(ROOT)]
    options = ["index", "--folder", str(wheel.parent), "--serve", "--port", "0"]
    with subprocess.Popen(
        [*command, *options], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as served:
        assert served.stdout
        shown = []
        for line in served.stdout:
            shown.append(line.strip())
            if 'url = "' in line:
                break
        address = shown[-1].removeprefix('url = "').removesuffix('"')
        with urlopen(f"{address}demo/") as page:  # noqa: S310 our own server
            assert wheel.name.encode() in page.read()
        served.send_signal(signal.SIGINT)
        assert served.wait(30) == 130
    assert f"extra-index-url = {address}" in shown
    pin = "Pin the local version, as in demo==1.0+cu118: public indexes accept none."
    assert pin in shown
