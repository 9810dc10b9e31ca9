"""What is said of this host and of others, done to the letter."""

import errno
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.making import Maker, find_text, make_file, make_program
from tests.remedies.following import CommandLine, failing
from tests.tools.bazel.test_binary import VERSION, fake

from tfwright.documents.host_file import WorkerTable
from tfwright.errors import HostError, RecipeError, SupplyError
from tfwright.nightly import timer
from tfwright.tools import disk
from tfwright.tools.bazel import binary
from tfwright.tools.http import server
from tfwright.tools.python import venv
from tfwright.tools.remote import ssh

pytestmark = pytest.mark.medium


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EAGAIN])
@pytest.mark.parametrize("soft", [64, 1024, 2048])
def test_a_limit_is_raised_by_the_command_that_is_shown(number: int, soft: int) -> None:
    fault = disk.host_error(OSError(number, os.strerror(number)))
    (command,) = re.findall(r"'(ulimit [^']*)'", fault.remedy)
    option = command.split()[1]
    script = f"ulimit -S {option} {soft}; {command}; ulimit -S {option}; ulimit -H {option}"
    # dash knows no option for the number of processes.
    for shell in ("bash",) if option == "-u" else ("sh", "bash"):
        said = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=True)
        now, most = said.stdout.split()
        assert now == most


def test_another_port_is_chosen_or_the_program_that_uses_it_is_stopped(
    shell: CommandLine, make_wheel: Maker, tmp_path: Path
) -> None:
    folder = make_wheel().parent
    with server.listening(tmp_path) as other:
        port = other.server_address[1]
        command = f"invoke index --folder {folder} --serve --port {port}"
        shell.remedy(command, "--port")
        with server.listening(tmp_path) as free:
            assert free.server_address[1] != port
    with server.listening(tmp_path, port) as again:
        assert again.server_address[1] == port


OLD_PYTHON = """\
#!/bin/sh
case "$3" in
install) touch "{there}";;
*) test -e "{there}" || {{ echo "No module named virtualenv"; exit 1; }}
   exec "{python}" -m venv --without-pip "$3";;
esac
"""


def test_a_virtualenv_is_installed_by_the_command_that_is_shown(tmp_path: Path) -> None:
    python = tmp_path / "my pythons/python2.7"
    python.parent.mkdir()
    there = tmp_path / "virtualenv"
    make_program(python, OLD_PYTHON.format(there=there, python=sys.executable))

    def create() -> None:
        venv.create(python, "2.7.18", tmp_path / "home", tmp_path / "log")

    fault = failing(create, HostError)
    command = find_text(r"run '([^']* install [^']*)'", fault.remedy)
    subprocess.run(shlex.split(command[1]), check=True)
    create()
    assert (tmp_path / "home/bin/python").exists()


def test_a_bazel_is_named_in_the_host_file_as_is_shown(tmp_path: Path) -> None:
    def obtain(given: Path | None) -> Path:
        store = (tmp_path / "store",)
        return binary.obtain(VERSION, {}, store, given=given, offline=True, note=print).path

    gone = failing(lambda: obtain(tmp_path / "none"), RecipeError)
    assert gone.remedy == "Correct [bazels] in the host file, or take it out."
    fault = failing(lambda: obtain(None), SupplyError)
    line = re.search(r"\[bazels\] (\S+ = )'/path/to/bazel'", fault.remedy)
    assert line, fault.remedy
    brought = make_file(tmp_path / "brought", fake())
    brought.chmod(0o755)
    table = tomllib.loads(f"{line[1]}'{brought}'")
    assert obtain(Path(table[VERSION])).read_bytes() == fake()


def test_a_machine_that_was_lost_is_tried_by_the_command_that_is_shown(
    programs: Callable[..., None], tmp_path: Path
) -> None:
    host = WorkerTable(
        name="one", address="build@one.example", directory="/srv", config=tmp_path / "a b"
    )
    seen = tmp_path / "seen"
    programs(ssh=f'printf "%s\\n" "$@" > {seen}; exit 255')
    done = ssh.run(host, ("build",), tmp_path / "log")
    assert done.lost
    command = done.remedy.partition(": ")[2]
    programs(ssh=f'printf "%s\\n" "$@" > {seen}')
    subprocess.run(shlex.split(command), check=True)
    # The same machine by the same settings, and nothing else is asked of it.
    said = seen.read_text("utf-8").splitlines()
    assert said == ["-F", str(tmp_path / "a b"), "build@one.example", "true"]


def test_a_table_that_cron_refuses_is_edited_by_hand(
    programs: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tfwright.tools.process.command.SYSTEM_PATH", (str(tmp_path / "bin"), "/usr/bin", "/bin")
    )
    programs(crontab='test "$1" = -e || { echo "bad minute" >&2; exit 1; }')
    fault = failing(lambda: timer._crontab("* x"), HostError)
    (command,) = re.findall(r"'(crontab [^']*)'", fault.remedy)
    assert fault.evidence.lines == ("bad minute",)
    subprocess.run(shlex.split(command), check=True)
