"""Builds submitted to a real Slurm of one node on this machine."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tfwright.documents.host_file import SlurmTable
from tfwright.tools.remote import slurm
from tfwright.tools.remote.slurm import SlurmResult

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.getuid() != 0 or not all(map(shutil.which, PROGRAMS)),
        reason=f"needs root and {', '.join(PROGRAMS)}",
    ),
]
CLUSTER = """\
ClusterName=tfwright
SlurmctldHost={machine}(127.0.0.1)
SlurmctldPort={control}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={room}/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={room}/state
SlurmdSpoolDir={room}/spool
SlurmctldPidFile={room}/control.pid
SlurmdPidFile={room}/node.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=n1 NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=short Nodes=n1 Default=YES MaxTime=10 State=UP
"""
# The first start of "cancelled" waits for its end; all others end at once.
TASKS = """\
import pathlib, sys, time
place = pathlib.Path(sys.argv[-1] + ".started")
waits = "cancelled" in sys.argv and not place.exists()
place.write_text("")
if waits:
    time.sleep(600)
sys.exit(4 if "bad" in sys.argv else 0)
"""


def free_ports() -> Generator[int, None, None]:
    """Yield ports at which nothing listens."""
    with ExitStack() as stack:
        while True:
            probe = stack.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            yield probe.getsockname()[1]


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run a Slurm in a directory, whose name is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="slurm-") as name:
        folder = Path(name)
        for directory in ("state", "spool", "checkout"):
            (folder / directory).mkdir()
        ports = free_ports()
        written = CLUSTER.format(
            machine=socket.gethostname(),
            control=next(ports),
            node=next(ports),
            room=folder,
            cores=os.cpu_count(),
        )
        ports.close()
        (folder / "slurm.conf").write_text(written, "utf-8")
        (folder / "key").write_bytes(os.urandom(128))
        (folder / "key").chmod(0o600)
        monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        with running(folder):
            yield folder


@contextmanager
def running(folder: Path) -> Iterator[None]:
    """Start the daemons; yield once the node takes jobs."""
    files = ("key-file", "pid-file", "log-file", "seed-file")
    names = [f"--{name}={folder}/{name.partition('-')[0]}" for name in files]
    munged = ("munged", "-F", "--force", *names, f"--socket={folder}/munge")
    daemons = (munged, ("slurmctld", "-D", "-i"), ("slurmd", "-D", "-N", "n1"))
    with ExitStack() as stack:
        for number, daemon in enumerate(daemons):
            log = stack.enter_context((folder / f"{number}.log").open("wb"))
            started = subprocess.Popen(daemon, stdout=log, stderr=log)
            stack.callback(started.wait)
            stack.callback(started.terminate)
            # munged makes its socket before the others ask for it.
            time.sleep(1)
        wait_for_node(folder)
        yield


def wait_for_node(folder: Path) -> None:
    """Return once the node is idle; fail after 30 seconds with what the daemons say."""
    argv = ("sinfo", "--noheader", "--format=%t")
    for _ in range(60):
        said = subprocess.run(argv, capture_output=True, text=True, check=False)
        if said.stdout.strip() == "idle":
            return
        time.sleep(0.5)
    logs = [path.read_text("utf-8") for path in sorted(folder.glob("?.log"))]
    pytest.skip(f"no Slurm can run here: {logs[-1][-300:]}")


def test_slurm_gives_results_takes_back_what_was_cancelled_and_says_what_waits(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "ARRIVAL_SECONDS", 3.0)
    (room / "checkout/tasks.py").write_text(TASKS, "utf-8")
    table = SlurmTable(
        directory=room / "checkout",
        python=sys.executable,
        # More than the partition gives.
        options=("--time=20",),
        most=2,
    )
    said: list[str] = []

    def note(line: str) -> None:
        said.append(line)
        # Its user asks for less.
        argv = ("squeue", "--noheader", "--format=%F")
        for job in set(told(*argv).split()):
            told("scontrol", "update", f"JobId={job}", "TimeLimit=5")

    def hear(result: SlurmResult) -> None:
        results[result.number] = result
        if result.number == 0:
            cancel(room / "checkout/cancelled.started")

    results: dict[int, SlurmResult] = {}
    programs = [("build", word) for word in ("good", "cancelled", "bad")]
    slurm.run(table, room / "results", [programs], hear, note)
    assert said[0] == "Slurm: waiting tasks: 2 (PartitionTimeLimit)"
    statuses = {number: each.status for number, each in results.items()}
    assert statuses == {0: 0, 1: 0, 2: 4}
    assert results[1].nodes == ("n1", "n1")


SLEEPERS = """\
import pathlib, sys, time
print("Failed in " + sys.argv[-1])
pathlib.Path(sys.argv[-1] + ".started").touch()
time.sleep(600 if "long" in sys.argv else 3)
sys.exit(4 if "bad" in sys.argv else 0)
"""
RUN = """\
import sys
from pathlib import Path
from tfwright.documents.host_file import SlurmTable
from tfwright.tools.remote import slurm
table = SlurmTable(directory=Path(sys.argv[1]) / "checkout", python=sys.executable)
with slurm.run_folder(Path(sys.argv[1]) / "runs", print) as folder:
    slurm.run(table, folder, [[sys.argv[2:]]], lambda task: print(
        task.status, task.log.read_text("utf-8").strip()), print)
"""


def test_runs_side_by_side_keep_their_results_and_a_killed_one_leaves_no_task(room: Path) -> None:
    (room / "checkout/tasks.py").write_text(SLEEPERS, "utf-8")

    def started(*program: str) -> subprocess.Popen[str]:
        argv = (sys.executable, "-c", RUN, str(room), *program)
        return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)

    killed = started("long", "killed")
    while not (room / "checkout/killed.started").exists():
        time.sleep(0.2)
    killed.kill()
    killed.communicate()
    assert told("squeue", "--noheader", "--format=%T") == "RUNNING"
    runs = [started(*program) for program in (("good", "one"), ("bad", "two"))]
    said = [run.communicate(timeout=120)[0] for run in runs]
    assert sum("cancelled what a killed run left" in text for text in said) == 1
    assert [text.splitlines()[-1] for text in said] == ["0 Failed in one", "4 Failed in two"]
    assert told("squeue", "--noheader") == ""
    assert not list(room.glob("runs/*/running"))


def cancel(started: Path) -> None:
    """Cancel task 1 as soon as it runs."""
    while not started.exists():
        time.sleep(0.1)
    job = told("squeue", "--noheader", "--format=%F").split()[0]
    told("scancel", f"{job}_1")


def told(*argv: str) -> str:
    """Return what a program of Slurm prints."""
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return done.stdout.strip()
