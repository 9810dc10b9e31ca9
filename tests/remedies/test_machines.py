"""What is said of other machines, and of the programs that reach them, done to the letter."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.making import find_text
from tests.remedies.following import failing
from tests.workers.test_remote import HOST, LOCAL_SSH

from tfwright.documents.host_file import HostFile, SlurmTable
from tfwright.documents.toml import load
from tfwright.errors import HostError, ToolError
from tfwright.tools.remote import slurm, ssh

NAMED = HOST.changed(address="one")


def linked(folder: Path, *names: str) -> None:
    """Install programs of this host into a folder."""
    for name in names:
        (folder / name).symlink_to(str(shutil.which(name, path="/usr/bin:/bin")))


@pytest.mark.usefixtures("no_programs")
def test_ssh_is_installed(programs: Callable[..., None], tmp_path: Path) -> None:
    run = partial(ssh.run, NAMED, ("build",), tmp_path / "log")
    fault = failing(run, HostError)
    assert fault.remedy == "Install OpenSSH."
    programs(ssh="exit 0")
    assert run().status == 0


@pytest.fixture
def send(tmp_path: Path) -> Callable[..., None]:
    """Return what sends files of a folder to the machine."""
    (tmp_path / "source").mkdir()
    (tmp_path / "home").mkdir()

    def sent(*names: str) -> None:
        there, log = str(tmp_path / "there"), tmp_path / "log"
        ssh.send_files(NAMED, tmp_path / "source", names, there, log)

    return sent


needs_rsync = pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync")


@needs_rsync
@pytest.mark.usefixtures("no_programs")
@pytest.mark.medium
def test_rsync_is_installed_here_and_there(
    programs: Callable[..., None], tmp_path: Path, send: Callable[..., None]
) -> None:
    programs(ssh="echo 'sh: 1: rsync: not found' >&2; exit 127")
    fault = failing(send, HostError)
    assert fault.remedy == "Install rsync on this host."
    linked(tmp_path / "bin", "rsync")
    fault = failing(send, HostError)
    assert fault.remedy == "Install it there."
    linked(tmp_path / "bin", "sh", "mkdir")
    programs(ssh=LOCAL_SSH.format(home=tmp_path / "home"))
    send()


@needs_rsync
@pytest.mark.medium
def test_what_rsync_names_is_corrected(
    programs: Callable[..., None], tmp_path: Path, send: Callable[..., None]
) -> None:
    programs(ssh=LOCAL_SSH.format(home=tmp_path / "home"))
    fault = failing(lambda: send("absent"), ToolError, "Correct")
    log = find_text(r"is in (\S+)\.$", fault.remedy)
    named = str(tmp_path / "source/absent")
    assert named in Path(log[1]).read_text("utf-8")
    assert any(named in line for line in fault.evidence.lines)
    Path(named).touch()
    send("absent")
    assert (tmp_path / "there/absent").is_file()


@needs_rsync
def test_the_machine_that_is_named_gets_room(
    programs: Callable[..., None], tmp_path: Path, send: Callable[..., None]
) -> None:
    disk = tmp_path / "full"
    disk.touch()
    full = "rsync: [receiver] write failed: No space left on device (28)"
    programs(
        ssh=f"test -e {disk} && {{ echo '{full}' >&2; exit 11; }}\n"
        + LOCAL_SSH.format(home=tmp_path / "home")
    )
    fault = failing(send, HostError)
    assert fault.remedy == f"Free some space on {HOST.name}."
    disk.unlink()
    send()


# Slurm


SBATCH = """\
case "$*" in
*--partition=night*) echo "sbatch: error: invalid partition specified: night"; exit 1;;
esac
echo '{"run": "room", "task": 0, "status": 0, "seconds": 1}' > @/0.json
echo @SAYS
"""


@pytest.fixture
def submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Return what lets Slurm run a task, and returns the exit statuses of all."""
    monkeypatch.setattr(slurm, "INTERVAL_SECONDS", 0.01)

    def submitted(*options: str) -> list[int]:
        room, ended = tmp_path / "room", list[int]()
        table = SlurmTable(directory=tmp_path, options=options)
        slurm.run(table, room, [("build",)], lambda task: ended.append(task.status), print)
        return ended

    return submitted


def sbatch(tmp_path: Path, says: str = "17") -> str:
    text = SBATCH.replace("@SAYS", says)
    return text.replace("@", str(tmp_path / "room"))


@pytest.mark.usefixtures("no_programs")
@pytest.mark.medium
def test_slurm_is_installed(
    programs: Callable[..., None], tmp_path: Path, submit: Callable[..., list[int]]
) -> None:
    fault = failing(submit, HostError)
    assert fault.remedy == "Install Slurm."
    programs(sbatch="echo 17")
    fault = failing(submit, HostError)
    assert fault.remedy == "Install Slurm."
    done = """echo '{"run": "room", "task": 0, "status": 0, "seconds": 1}'"""
    programs(squeue=f"{done} > {tmp_path}/room/0.json")
    assert submit() == [0]


@pytest.mark.parametrize("fault", ["an option", "no job"])
def test_sbatch_says_what_is_wrong_with_the_options_of_the_host_file(
    programs: Callable[..., None], tmp_path: Path, submit: Callable[..., list[int]], fault: str
) -> None:
    says = "17" if fault == "an option" else "queued somehow"
    programs(sbatch=sbatch(tmp_path, says), squeue="exit 0")
    path = tmp_path / "host.toml"

    def with_options(*options: str) -> list[int]:
        path.write_text(f'[slurm]\ndirectory = "/srv"\noptions = {list(options)}\n', "utf-8")
        table = load(path, HostFile).slurm
        assert table
        return submit(*table.options)

    wrong = ["--partition=night"] if fault == "an option" else []
    refused = failing(lambda: with_options(*wrong), ToolError, "[slurm]")
    said = "queued somehow" if says != "17" else "invalid partition specified"
    assert said in refused.what
    programs(sbatch=sbatch(tmp_path))
    assert with_options("--time=1") == [0]
