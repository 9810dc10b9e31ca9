"""Programs without a network, tried with real ones; skipped where the system takes no program's network away."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.failing import fails

from tfwright.errors import HostError
from tfwright.tools.process import isolation, pipes, pseudo_terminal, runner
from tfwright.tools.process.command import Command

pytestmark = pytest.mark.skipif(
    isolation.isolation_obstacle() is not None, reason=str(isolation.isolation_obstacle())
)

SYSTEM_PYTHON = Path("/usr/bin/python3")
ENV = {"PATH": "/usr/bin:/bin"}
REACH = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"
TALK = (
    "import socket; here = socket.create_server(('127.0.0.1', 0)); "
    "socket.create_connection(here.getsockname()); print('heard')"
)


@pytest.fixture
def port() -> Iterator[int]:
    """Return the port of a server outside."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def enclosed(*argv: str) -> Command:
    return isolation.in_own_network(Command(argv, Path("/"), ENV))


def ran(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        enclosed(*argv).argv, env=ENV, capture_output=True, text=True, check=False
    )


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return sys.executable, "-c", code, *arguments


def test_an_enclosed_program_has_loopback_and_no_other_interface() -> None:
    said = runner.short_output(enclosed("cat", "/proc/net/dev"))
    assert [line.split(":")[0].strip() for line in said.splitlines()[2:]] == ["lo"]


@pytest.mark.medium
def test_its_loopback_works_and_is_its_own(port: int) -> None:
    assert runner.short_output(enclosed(*python(TALK))) == "heard"
    assert ran(*python(REACH, str(port))).returncode == 1
    subprocess.run(python(REACH, str(port)), env=ENV, check=True)


def test_the_user_and_the_owner_of_new_files_stay_the_same(tmp_path: Path) -> None:
    runner.short_output(enclosed("touch", str(tmp_path / "made")))
    assert (tmp_path / "made").stat().st_uid == os.getuid()
    assert runner.short_output(enclosed("id", "-u")) == str(os.getuid())


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not SYSTEM_PYTHON.exists(), reason=f"there is no {SYSTEM_PYTHON}")
def test_who_is_not_root_has_no_network_either_and_stays_who_he_is() -> None:
    # Another user cannot read root's files, so that the program is handed over as text.
    argv = (
        SYSTEM_PYTHON,
        "-I",
        "-c",
        isolation.PROGRAM.read_text("utf-8"),
        "/bin/sh",
        "-c",
        "id -u; cat /proc/net/dev; grep CapEff /proc/self/status",
    )
    done = subprocess.run(
        argv,
        env=ENV,
        capture_output=True,
        text=True,
        user=65534,
        group=65534,
        extra_groups=[],
        check=False,
        cwd="/",
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("this system gives a user no namespace")
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1].split()[1]) == ("65534", "0" * 16)
    named = [line.split(":")[0].strip() for line in lines if ":" in line]
    assert named == ["lo", "CapEff"]


def test_the_exit_status_is_the_programs_own() -> None:
    assert ran("sh", "-c", "exit 7").returncode == 7


def test_a_program_that_is_not_there_is_named() -> None:
    done = ran("/nowhere/bazel")
    assert (done.returncode, done.stderr) == (127, "/nowhere/bazel: No such file or directory\n")


@pytest.mark.medium
def test_in_a_closed_block_no_program_has_a_network_and_after_it_all_have(tmp_path: Path) -> None:
    look = Command(("/bin/readlink", "/proc/self/ns/net"), tmp_path, ENV)
    ours = str(Path("/proc/self/ns/net").readlink())
    with isolation.without_network():
        logged = runner.run(look, tmp_path / "log", remedy="-").strip()
        collected = pipes.collect(look).printed.decode().strip()
        with pseudo_terminal.running(look, remedy="-") as child:
            shown = "".join(pseudo_terminal.read_output(child)).strip()
        with fails(HostError, "cannot be run"):
            runner.run(Command(("/no/program",), tmp_path, ENV), tmp_path / "log", remedy="-")
    assert ours not in {logged, collected, shown}
    assert all(found.startswith("net:[") for found in (logged, collected, shown))
    assert pipes.collect(look).printed.decode().strip() == ours
