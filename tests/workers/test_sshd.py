"""Builds handed out over a real sshd on this machine, as its own user."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from tests.failing import fails
from tests.making import make_folder

from tfwright.documents.host_file import WorkerTable
from tfwright.errors import HostError, ToolError
from tfwright.tools.remote import ssh
from tfwright.tools.remote.ssh import RemoteBuild
from tfwright.workers import hand_out
from tfwright.workers.schedule import Assignment, WorkSchedule

SSHD = Path("/usr/sbin/sshd")
PRIVILEGES = Path("/run/sshd")
"""A directory without which root's sshd does not start."""
pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(
        not (SSHD.exists() and shutil.which("ssh") and shutil.which("rsync")),
        reason="needs ssh, sshd and rsync",
    ),
    pytest.mark.skipif(
        os.getuid() == 0 and not PRIVILEGES.exists(), reason=f"root's sshd needs {PRIVILEGES}"
    ),
]
SERVER = """\
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
ListenAddress 127.0.0.1:{port}
StrictModes no
UsePAM no
{more}
"""
CLIENT = """\
IdentityFile {folder}/key
IdentitiesOnly yes
Port {port}
User {user}
UserKnownHostsFile {folder}/known_hosts
GlobalKnownHostsFile /dev/null
"""


@dataclass(frozen=True)
class Machine:
    """An sshd, and a checkout whose tasks.py is a few lines of Python."""

    host: WorkerTable
    daemon: subprocess.Popen[bytes]

    def kill(self) -> None:
        """End the sshd and its connections, as if the machine were switched off."""
        processes = psutil.Process(self.daemon.pid).children(recursive=True)
        self.daemon.kill()
        for process in processes:
            # Not the build itself: that ends with its terminal, or the test fails.
            if process.name().startswith("sshd"):
                process.kill()


@contextmanager
def machine(folder: Path, tasks: str, more: str = "") -> Iterator[Machine]:
    """Start a machine whose checkout does `tasks`; `more` are lines for its sshd."""
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for name in ("key", "host_key"):
        made = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name)
        subprocess.run(made, check=True)
    known = " ".join((folder / "host_key.pub").read_text("utf-8").split()[:2])
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {known}\n", "utf-8")
    values: Mapping[str, object] = {
        "folder": folder,
        "port": port,
        "user": getpass.getuser(),
        "more": more,
    }
    (folder / "client").write_text(CLIENT.format(**values), "utf-8")
    (folder / "server").write_text(SERVER.format(**values), "utf-8")
    (folder / "tasks.py").write_text(tasks, "utf-8")
    host = WorkerTable(
        name=folder.name,
        address="127.0.0.1",
        directory=str(folder),
        python=sys.executable,
        config=folder / "client",
    )
    with subprocess.Popen((SSHD, "-D", "-f", folder / "server")) as daemon:
        try:
            wait_for(lambda: answers(port))
            yield Machine(host, daemon)
        finally:
            daemon.kill()


def answers(port: int) -> bool:
    """Say whether a port is listened to."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(event: Callable[[], bool]) -> None:
    """Return once something holds; fail after ten seconds."""
    for _ in range(200):
        if event():
            return
        time.sleep(0.05)
    pytest.fail("it did not happen within ten seconds")


# Waits until it is ended, like a build that takes hours.
ENDLESS = """\
import os, pathlib, time
pathlib.Path("pid").write_text(str(os.getpid()))
time.sleep(600)
"""


def test_the_build_of_a_machine_that_dies_ends_there_and_begins_elsewhere(tmp_path: Path) -> None:
    with (
        machine(tmp_path / "dying", ENDLESS) as dying,
        machine(tmp_path / "steady", "print('a.whl')") as steady,
    ):
        hosts = {each.host.name: each.host for each in (dying, steady)}

        def build(given: Assignment) -> RemoteBuild:
            log = tmp_path / f"{given.worker}.log"
            return ssh.run(hosts[given.worker], ("build",), log)

        heard: list[str] = []

        def hear(given: Assignment) -> None:
            heard.append(f"{given.state} {given.worker}")

        def kill() -> None:
            try:
                wait_for((tmp_path / "dying/pid").is_file)
            finally:
                # Otherwise a build that begins too late would run to its end.
                dying.kill()

        threading.Thread(target=kill, daemon=True).start()
        schedule = WorkSchedule(["demo"], ["dying", "steady"], {})
        hand_out.run(schedule, build, hear)
        done = schedule.assignments["demo"]
        assert heard == ["running dying", "waiting dying", "running steady", "built steady"]
        assert done.lost == ("dying",)
        pid = int((tmp_path / "dying/pid").read_text("utf-8"))
        wait_for(lambda: not psutil.pid_exists(pid))


def test_files_and_the_last_line_of_a_program_come_over_a_real_connection(tmp_path: Path) -> None:
    tasks = "import sys; print('noise', file=sys.stderr); print('b', sys.argv[1])"
    source = make_folder(tmp_path / "source")
    (source / "a b").write_text("content", "utf-8")
    with machine(tmp_path / "one", tasks) as one:
        there = f"{tmp_path}/there/with a blank"
        log = tmp_path / "log"
        ssh.send_files(one.host, source, ["a b"], there, log)
        ran = ssh.run(one.host, ("build",), log)
        assert (ran.status, ran.printed) == (0, "b build")
        back = make_folder(tmp_path / "back")
        ssh.fetch(one.host, there, back, log)
        assert (back / "a b").read_text("utf-8") == "content"
        ssh.remove(one.host, there)
        assert not Path(there).exists()


@pytest.mark.parametrize("shell", ["tcsh", "fish", "sh"])
def test_any_login_shell_starts_a_program(shell: str, tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    forced = f'ForceCommand exec {shell} -c "$SSH_ORIGINAL_COMMAND"'
    with machine(tmp_path / "one", "print('a', 'b')", forced) as one:
        ran = ssh.run(one.host, ("build",), tmp_path / "log")
    assert (ran.status, ran.printed) == (0, "a b")


def test_a_machine_without_rsync_is_told_from_one_that_is_away(tmp_path: Path) -> None:
    programs = make_folder(tmp_path / "bin")
    (programs / "mkdir").symlink_to(shutil.which("mkdir") or "")
    source, log = tmp_path / "source", tmp_path / "log"
    source.mkdir()
    with machine(tmp_path / "one", "", f"SetEnv PATH={programs}") as one:
        with fails(HostError, "one", "rsync"):
            ssh.send_folder(one.host, source, f"{tmp_path}/there", log)
        one.daemon.send_signal(signal.SIGKILL)
        one.daemon.wait()
        with fails(ToolError, "Connection refused"):
            ssh.send_folder(one.host, source, f"{tmp_path}/there", log)
