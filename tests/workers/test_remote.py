"""What ssh, rsync and sbatch are asked to do, and what a Slurm task leaves."""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.making import Read, make_file, make_folder
from tests.nightly.wheels import write_wheel
from tests.workers.conftest import Programs
from tests.workers.test_dispatch import DEFAULTS

from tfwright.documents.host_file import HostFile, SlurmTable, WorkerTable
from tfwright.errors import HostError, SupplyError
from tfwright.lock import inputs as lock_inputs
from tfwright.pipeline.job import RecipeJob
from tfwright.tools import files
from tfwright.tools.remote import slurm, ssh
from tfwright.tools.remote.slurm import SlurmResult
from tfwright.tools.remote.ssh import RemoteBuild
from tfwright.wheel.seal import statement
from tfwright.workers import dispatch as builds
from tfwright.workers import hand_out, supply
from tfwright.workers import page as workers_page
from tfwright.workers.schedule import Assignment, WorkSchedule


def a_host(name: str, address: str, directory: str, **keys: object) -> WorkerTable:
    """Return a worker of a host file."""
    values = {"name": name, "address": address, "directory": directory}
    return WorkerTable.model_validate({**values, **keys})


HOST = a_host("one", "build@one.example", "/srv/tfwright", host_file="/etc/tfwright.toml")


OPTIONS = {**DEFAULTS, "until": "source"}


def program(recipe: str) -> tuple[str, ...]:
    """Return the command that builds a recipe up to its source."""
    return builds.program_of(recipe, OPTIONS, supplied=False)


def remote(recipe: str) -> tuple[str, ...]:
    return ssh.command(HOST, program(recipe)).argv


def test_a_build_asks_nothing_and_ends_with_the_connection() -> None:
    argv = remote("demo")
    assert argv[0] == "ssh"
    assert "-oBatchMode=yes" in argv
    assert "-tt" in argv
    variables = "TERM=dumb TFWRIGHT_HOST_FILE=/etc/tfwright.toml"
    program = "python3 tasks.py build --recipe demo --wait --until=source"
    assert f"env {variables} {program}" in argv[-1]
    # An address is never an option.
    assert argv[argv.index("build@one.example") - 1] == "--"


@pytest.mark.parametrize("name", ["a b", "$(reboot)", "'; reboot; '", "-oProxyCommand=x"])
def test_a_recipe_name_is_one_word_for_the_shell_on_the_other_side(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "tasks.py").write_text("import sys; print(sys.argv)\n", "utf-8")
    host = HOST.changed(directory=str(tmp_path), python=sys.executable)
    script = ssh.command(host, program(name)).argv[-1]
    said = subprocess.run(("/bin/sh", "-c", script), capture_output=True, check=True)
    words = ["tasks.py", "build", "--recipe", name, "--wait", "--until=source"]
    printed = f"{ssh.PRINTED}{words}\n{ssh.PRINTED_END}"
    assert said.stdout.decode().strip() == printed


def test_a_path_below_the_home_of_the_other_user_is_found_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_file(
        tmp_path / "my checkout/tasks.py",
        "import os, sys; print(os.environ['TFWRIGHT_HOST_FILE'], sys.argv[1:])",
    )
    host = HOST.changed(
        directory="~/my checkout", host_file="~/$x/host.toml", python=sys.executable
    )
    program = ("bundle", "--lacking", "~/out/inputs", "a~b")
    script = ssh.command(host, program).argv[-1]
    monkeypatch.setenv("HOME", str(tmp_path))
    said = subprocess.run(("/bin/sh", "-c", script), capture_output=True, check=True)
    words = ["bundle", "--lacking", f"{tmp_path}/out/inputs", "a~b"]
    assert f"{tmp_path}/$x/host.toml {words}" in said.stdout.decode()


# In the place of ssh: the shell of this host, with another home.
LOCAL_SSH = """\
while [ "$1" != one ]; do shift; done
shift
cd {home} && HOME={home} exec sh -c "$*"
"""


@pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync")
@pytest.mark.parametrize("folder", ["~/my out/inputs", "~/link/inputs"])
@pytest.mark.medium
def test_files_go_to_a_folder_below_the_home_of_the_other_user_and_back(
    tmp_path: Path, programs: Programs, folder: str
) -> None:
    home, source = tmp_path / "home", tmp_path / "source"
    (home / "disk").mkdir(parents=True)
    (home / "link").symlink_to(home / "disk")
    source.mkdir()
    (source / "linked").symlink_to(source / "a b")
    for name in ("a b", "c"):
        (source / name).write_text(name, "utf-8")
    programs(ssh=LOCAL_SSH.format(home=home))
    host = HOST.changed(address="one")
    log = tmp_path / "log"
    ssh.send_files(host, source, ["a b", "linked"], folder, log)
    there = home / folder.removeprefix("~/")
    assert sorted(path.name for path in there.iterdir()) == ["a b", "linked"]
    assert not (there / "linked").is_symlink()
    (tmp_path / "back").mkdir()
    ssh.fetch(host, folder, tmp_path / "back", log, ["a*"])
    assert [path.name for path in (tmp_path / "back").iterdir()] == ["a b"]
    ssh.send_folder(host, source, f"{folder}/more", log)
    ssh.fetch(host, f"{folder}/more", tmp_path / "back", log)
    assert (tmp_path / "back/c").is_file()
    ssh.remove(host, folder)
    assert not there.exists()


def test_a_machine_without_a_checkout_is_to_blame_itself(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        script = ssh.command(HOST.changed(directory=str(folder)), ("build",)).argv[-1]
        ran = subprocess.run(("/bin/sh", "-c", script), capture_output=True, check=False)
        assert RemoteBuild(0.0, ran.returncode).refused


def test_a_lost_machine_is_named_with_the_reason_and_how_to_try_it(
    tmp_path: Path, programs: Programs
) -> None:
    said = "ssh: connect to host one.example port 22: Connection refused"
    programs(ssh=f"echo '{said}' >&2; exit 255")
    host = HOST.changed(config=Path("/etc/builders"))
    done = ssh.run(host, program("demo"), tmp_path / "log")
    assert (done.lost, done.failure) == (True, said)
    assert "one" in done.remedy
    assert done.remedy.endswith("ssh -F /etc/builders build@one.example true")
    assert done.log == str(tmp_path / "log")


def ended_by_ssh(*lines: str) -> str:
    """Return a program in the place of ssh that closes the connection aloud, as ssh -tt does."""
    said = "\n".join((*lines, "Connection to one.example closed."))
    return f"cat <<'END'\n{said}\nEND\n"


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        ((f"{ssh.PRINTED}a.whl", ssh.PRINTED_END), "a.whl"),
        ((f"{ssh.PRINTED}note", "a.whl", ssh.PRINTED_END), "a.whl"),
        (("  publish 0.1 s", ssh.PRINTED, ssh.PRINTED_END), ""),
        ((f"{ssh.PRINTED}a.whl",), ""),
    ],
)
def test_what_a_build_printed_ends_before_what_ssh_says(
    tmp_path: Path, programs: Programs, said: tuple[str, ...], printed: str
) -> None:
    programs(ssh=ended_by_ssh(*said))
    done = ssh.run(HOST, program("demo"), tmp_path / "log")
    assert (done.printed, done.failure) == (printed, "")


NOT_FOUND = "env: python9: No such file"
TOO_OLD = "tfwright needs Python 3.11 or newer to run; this is 3.9."


@pytest.mark.parametrize(
    ("script", "status", "failure"),
    [
        ("echo 'Failed in compile: no x'; exit 5", 5, "Failed in compile: no x"),
        (f"echo '{TOO_OLD}'; echo '  uv run'; exit 3", 3, TOO_OLD),
        (
            ended_by_ssh(NOT_FOUND, ssh.PRINTED, ssh.PRINTED_END) + "exit 127",
            127,
            f"exit status 127: {NOT_FOUND}",
        ),
    ],
)
def test_what_failed_there_is_told_by_its_own_words(
    tmp_path: Path, programs: Programs, script: str, status: int, failure: str
) -> None:
    programs(ssh=script)
    done = ssh.run(HOST, program("demo"), tmp_path / "log")
    assert (done.lost, done.status, done.failure) == (False, status, failure)
    assert done.refused == (status != 5)
    assert done.log


def test_a_worker_that_names_no_wheel_has_not_built_it(tmp_path: Path, programs: Programs) -> None:
    programs(ssh=ended_by_ssh(ssh.PRINTED, ssh.PRINTED_END))
    given = built_by(worker_that_asks(tmp_path, inputs=False), "publish")
    assert given.state == "lost"
    assert "one named no wheel" in given.detail


def test_every_recipe_that_was_not_built_is_explained_with_worker_remedy_and_log(err: Read) -> None:
    def build(given: Assignment) -> RemoteBuild:
        if given.worker == "dying":
            return RemoteBuild(1.0, ssh.LOST, "no answer", "", "Log in", "a.log")
        status = 6 if given.recipe == "b" else 0
        return RemoteBuild(1.0, status, "wheel too big" if status else "", "", "Read it", "b.log")

    def hear(given: Assignment) -> None:
        workers_page.show_assignment(given)

    done = WorkSchedule(["a", "b"], ["dying", "steady"], {})
    hand_out.run(done, build, hear)
    given = [*done.assignments.values()]
    workers_page.show_assignments(given)
    said = err()
    assert "a: dying was lost; another worker takes it\n    why:  no answer" in said
    assert "b: failed on steady\n    why:  wheel too big\n    do:   Read it" in said
    assert "log:  b.log" in said
    assert builds.exit_status(given) == 6


def test_failures_of_several_kinds_have_the_status_of_an_outside_tool() -> None:
    failed = [Assignment(name, "failed", status=status) for name, status in (("a", 2), ("b", 6))]
    assert builds.exit_status(failed) == 5
    assert builds.exit_status([Assignment("a", "lost")]) == 5
    assert builds.exit_status([Assignment("a", "built")]) == 0


def worker_that_asks(tmp_path: Path, *, inputs: bool = True) -> HostFile:
    """Return a host file with one worker, which gets its inputs from this host."""
    worker = a_host("one", "one.example", "/srv/tfwright", build_out="/local/out", inputs=inputs)
    return HostFile(build_out=tmp_path / "out", workers=(worker,))


def built_by(settings: HostFile, until: str = "source") -> Assignment:
    """Build the demo on the workers of a host file; return what became of it."""
    options = {**OPTIONS, "until": until}
    (given,) = builds.build_remotely(settings, "workers", ["demo"], options, lambda _: None, print)
    return given


def test_a_build_whose_inputs_were_sent_asks_no_server(
    tmp_path: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supply, "send", lambda *_: None)
    programs(ssh=f"echo $* > {tmp_path}/asked; exit 2")
    built_by(worker_that_asks(tmp_path))
    asked = (tmp_path / "asked").read_text("utf-8")
    assert "build --recipe demo --wait --until=source --offline" in asked


def test_a_worker_is_not_lost_for_inputs_that_this_host_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gather(*_: object, **__: object) -> None:
        raise SupplyError("libxsmm could not be found", remedy="Copy it.")

    monkeypatch.setattr(supply, "gather", gather)
    given = built_by(worker_that_asks(tmp_path))
    assert (given.state, given.lost) == ("refused", ())
    assert given.detail == ("this host has not all its inputs: libxsmm could not be found")
    assert given.remedy == "Copy it."


def test_a_fault_of_ours_in_a_thread_ends_the_run_and_hangs_nothing() -> None:
    def build(given: Assignment) -> RemoteBuild:
        raise LookupError(given.recipe)

    with pytest.raises(LookupError, match="a"):
        hand_out.run(WorkSchedule(["a"], ["one"], {}), build, lambda _: None)


def table_of(tmp_path: Path, **keys: object) -> SlurmTable:
    (tmp_path / "tasks.py").write_text("import sys; print(sys.argv); sys.exit(4)\n", "utf-8")
    (tmp_path / "room").mkdir(exist_ok=True)
    values = {"directory": str(tmp_path), "python": sys.executable, "most": 3}
    return SlurmTable.model_validate({**values, **keys})


def test_a_task_runs_the_command_of_its_number_and_leaves_its_result(tmp_path: Path) -> None:
    given, room = table_of(tmp_path), tmp_path / "room"
    second = program("second $x")
    (room / "1.program").write_text(shlex.join(second) + "\n", "utf-8")
    script = make_file(room / "job.sh", slurm.batch_script(given, room))
    env = {"SLURM_ARRAY_TASK_ID": "1", "SLURMD_NODENAME": "n1", "PATH": "/usr/bin:/bin"}
    subprocess.run(("/bin/sh", script), env=env, check=True)
    result = json.loads((room / "1.json").read_text("utf-8"))
    assert result["status"] == 4
    # Its room was taken before the build, which may fill the disk.
    assert (room / "1.json").stat().st_size == 200
    assert (room / "1.nodes").read_text("utf-8") == "n1\n"
    said = (room / "1.log").read_text("utf-8")
    assert said.strip() == str(["tasks.py", *second])


def test_the_array_has_a_task_for_each_recipe(tmp_path: Path) -> None:
    given = table_of(
        tmp_path, options=["--mem=1G", "--array=0-3", "--job-name=mine", "--no-requeue"]
    )
    argv = slurm.submit_command(given, tmp_path / "room", range(40)).argv
    # The later of two options counts: tasks are found by our array and name.
    said = dict(word.split("=", 1) for word in argv if "=" in word)
    assert (said["--array"], said["--job-name"], said["--mem"]) == ("0-39", "room", "1G")
    assert argv.index("--requeue") < argv.index("--no-requeue")
    assert argv[-1] == str(tmp_path / "room/job.sh")
    # Later, one for each lost one.
    assert "--array=3,7" in slurm.submit_command(given, tmp_path / "room", [3, 7]).argv


SBATCH = """
# A Slurm that loses task 1 the first time, and runs all others at once.
room=$(dirname "$0")/room
echo "$@" >> "$room/submitted"
for number in $(printf '%s\n' "$@" | sed -n 's/^--array=//p' | sed 's/0-2/0 1 2/; s/1-1/1/'); do
    if [ "$number" = 1 ] && [ "$(wc -l < "$room/submitted")" = 1 ]; then
        echo dead >> "$room/1.nodes"
        continue
    fi
    SLURM_ARRAY_TASK_ID=$number SLURMD_NODENAME=n$number sh "$room/job.sh"
done
echo 17
"""


@pytest.mark.medium
def test_a_task_that_slurm_lost_is_run_again_and_both_nodes_are_named(
    tmp_path: Path, programs: Programs
) -> None:
    programs(sbatch=SBATCH, squeue="true")
    results = run_by_slurm(tmp_path, "abc", most=0)
    assert {result.status for result in results} == {4}
    assert {result.nodes for result in results if result.number == 1} == {("dead", "n1")}


def test_a_task_that_failed_is_told_by_its_own_words(tmp_path: Path) -> None:
    log = make_file(tmp_path / "0.log", "Failed in source: no commit\n  do: fetch\n")
    ended = hand_out.after_task(Assignment("a"), SlurmResult(0, 4, ("n1", "n2"), 9.0, log))
    assert (ended.state, ended.worker, ended.lost) == ("failed", "n2", ("n1",))
    assert ended.detail == "Failed in source: no commit"
    assert (ended.status, ended.log) == (4, str(log))


def test_ctrl_c_cancels_the_array(
    tmp_path: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, room = table_of(tmp_path), tmp_path / "room"
    scancel = f"echo $1 > {tmp_path}/ended"
    programs(sbatch="echo 17", squeue="true", scancel=scancel)

    def interrupt(jobs: Collection[str], _: Path) -> Mapping[int, str]:
        if jobs:
            raise KeyboardInterrupt
        return {}

    monkeypatch.setattr(slurm, "_task_states", interrupt)
    with pytest.raises(KeyboardInterrupt), slurm.run_folder(room, print) as folder:
        slurm.run(given, folder, [[program("a")]], lambda _: None, print)
    assert (tmp_path / "ended").read_text("utf-8") == f"--name={folder.name}\n"


def test_tasks_of_a_killed_run_are_cancelled_and_those_of_another_run_go_on(
    tmp_path: Path, programs: Programs
) -> None:
    programs(scancel=f"echo $1 >> {tmp_path}/ended", squeue="true")
    room = tmp_path / "room"
    killed = make_folder(room / "tfwright-killed")
    (killed / slurm.RUNNING).touch()
    said: list[str] = []
    with slurm.run_folder(room, said.append) as one, slurm.run_folder(room, print) as two:
        assert one != two
        assert len(said) == 1
        assert (tmp_path / "ended").read_text("utf-8") == "--name=tfwright-killed\n"
    assert not list(room.glob(f"*/{slurm.RUNNING}"))


def test_a_slurm_that_does_not_answer_is_asked_again_by_the_next_run(
    tmp_path: Path, programs: Programs
) -> None:
    programs(scancel="exit 1", squeue="exit 1")
    killed = make_folder(tmp_path / "room/tfwright-killed")
    (killed / slurm.RUNNING).touch()
    said: list[str] = []
    with slurm.run_folder(tmp_path / "room", said.append):
        assert "tfwright-killed" in said[0]
    assert (killed / slurm.RUNNING).exists()


def test_a_result_of_another_run_or_task_is_none(tmp_path: Path) -> None:
    said = {"run": "tfwright-other", "task": 1, "status": 0, "seconds": 1}
    (tmp_path / "1.json").write_text(json.dumps(said), "utf-8")
    assert slurm._read_result(tmp_path, 1).status == slurm.LOST
    (tmp_path / "1.json").write_text(json.dumps(said | {"run": tmp_path.name}), "utf-8")
    assert slurm._read_result(tmp_path, 1).status == 0


# In the place of ssh: a machine whose rsync ends like this.
RSYNC_FAULTS = {
    "echo 'ssh: connect to host one port 22: No route to host' >&2; exit 255": (
        "lost",
        "ssh: connect to host one port 22: No route to host",
    ),
    "echo 'bash: line 1: rsync: command not found' >&2; exit 127": ("refused", "one has no rsync"),
    "echo 'rsync: [receiver] write failed: No space left on device (28)' >&2; exit 11": (
        "refused",
        "The disk of one is full",
    ),
    # Not at once: rsync would name what it was writing.
    "echo Welcome; sleep 0.5": ("refused", "The shell of one prints a text"),
    "sleep 0.5; exit 12": ("lost", "rsync: connection unexpectedly closed"),
}


@pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync")
@pytest.mark.parametrize("script", RSYNC_FAULTS)
def test_a_worker_that_takes_no_files_is_lost_only_if_it_is_not_reached(
    tmp_path: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    def send(host: WorkerTable, *_: object) -> None:
        ssh.send_folder(host, tmp_path, "/local/out/inputs", tmp_path / "log")

    monkeypatch.setattr(supply, "send", send)
    programs(ssh=script)
    given = built_by(worker_that_asks(tmp_path))
    state, detail = RSYNC_FAULTS[script]
    assert given.state == state
    assert given.detail.startswith(detail)
    assert given.remedy


def test_a_recipe_that_cannot_be_read_loses_no_worker(
    tmp_path: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supply, "send", lambda *_: None)
    programs(ssh="exit 0")
    bad = make_file(tmp_path / "bad.toml", "[source]\nurl = 1\n")
    settings = worker_that_asks(tmp_path)
    recipes = [str(bad), "demo"]
    first, second = builds.build_remotely(
        settings, "workers", recipes, OPTIONS, lambda _: None, print
    )
    assert (first.state, first.status, first.lost) == ("failed", 2, ())
    assert second.state == "built"


def test_a_wheel_that_stayed_on_its_worker_is_missing_here(
    tmp_path: Path, programs: Programs
) -> None:
    programs(ssh=ended_by_ssh(f"{ssh.PRINTED}a-1-py3-none-any.whl", ssh.PRINTED_END))
    worker = a_host("one", "one", "/srv/x")
    settings = HostFile(build_out=tmp_path / "out", workers=(worker,))
    given = built_by(settings, "publish")
    assert given.state == "failed"
    assert "a-1-py3-none-any.whl, which is not in the wheelhouse of this host" in given.detail
    make_file(tmp_path / "out/wheelhouse/a-1-py3-none-any.whl", "")
    assert built_by(settings, "publish").state == "built"


def test_no_second_worker_builds_what_this_host_has_no_room_for(
    tmp_path: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(*_: object) -> None:
        raise HostError("The disk of this host is full", remedy="Free some space.")

    monkeypatch.setattr(ssh, "fetch", fetch)
    said = (f"{ssh.PRINTED}a-1-py3-none-any.whl", ssh.PRINTED_END)
    programs(ssh=ended_by_ssh(*said))
    tables = [a_host(name, name, "/srv/x", build_out="/local") for name in ("one", "two")]
    settings = HostFile(build_out=tmp_path / "out", workers=tuple(tables))
    given = built_by(settings, "publish")
    assert (given.state, given.detail) == ("failed", "The disk of this host is full")
    assert (given.refused, given.lost) == ((), ())


def run_by_slurm(tmp_path: Path, *batches: str, **keys: object) -> list[SlurmResult]:
    """Run a task for each letter; return the results in the order of their end."""
    ended: list[SlurmResult] = []
    tasks = [[program(name) for name in batch] for batch in batches]
    slurm.run(table_of(tmp_path, **keys), tmp_path / "room", tasks, ended.append, print)
    return ended


# How a program of Slurm begins that leaves results in the place of tasks.
ROOM = """\
cd "$(dirname "$0")/room"
leave() {
    for number; do
        printf '{"run": "room", "task": %d, "status": 0, "seconds": 1}' $number > $number.json
    done
}
"""
# Task 0 is cancelled at once. Task 1 ends only when task 0 was submitted again.
CANCELLING = f"""{ROOM}
echo "$@" >> submitted
if [ "$(wc -l < submitted)" = 2 ]; then
    leave 0 1
    echo 18
else
    echo 17
fi
"""


@pytest.mark.medium
def test_a_cancelled_task_is_submitted_again_while_the_others_run(
    tmp_path: Path, programs: Programs
) -> None:
    programs(sbatch=CANCELLING, squeue="echo '1 RUNNING None'")
    ended = run_by_slurm(tmp_path, "ab")
    assert [(result.number, result.status) for result in ended] == [(0, 0), (1, 0)]
    arrays = (tmp_path / "room/submitted").read_text("utf-8").splitlines()
    assert ["--array=0-1 " in arrays[0], "--array=0-0 " in arrays[1]] == [True, True]


@pytest.mark.medium
def test_a_user_reads_why_slurm_lets_tasks_wait(tmp_path: Path, programs: Programs) -> None:
    given, room = table_of(tmp_path), tmp_path / "room"
    queue = f"""{ROOM}
if [ -e asked ]; then
    echo '0 PENDING None'
    leave 0 1
else
    touch asked
    echo '0 PENDING PartitionTimeLimit'
    echo '1 PENDING PartitionTimeLimit'
fi
"""
    programs(sbatch="echo 17", squeue=queue)
    said: list[str] = []
    tasks = [program(name) for name in ("a", "b")]
    slurm.run(given, room, [tasks], lambda _: None, said.append)
    assert said == ["Slurm: waiting tasks: 2 (PartitionTimeLimit)"]


@pytest.mark.medium
def test_nodes_build_offline_what_this_host_has_fetched(
    tmp_path: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = SlurmTable(directory=tmp_path, inputs=True)
    settings = HostFile(build_out=tmp_path / "out", slurm=table)
    fetched: list[str] = []

    def fetch(job: RecipeJob, **_: object) -> None:
        submitted = list(settings.build_out.glob("workers/slurm/*/?.json"))
        assert len(submitted) == len(set(fetched) - {"demo-cuda"})
        fetched.append(job.name)
        if job.name == "demo-cuda":
            raise SupplyError("Bazel could not be found", remedy="Copy it.")

    monkeypatch.setattr(lock_inputs, "fetch_inputs", fetch)
    # The first build runs while the inputs of the second one are fetched.
    ends = """\
cd "$(dirname "$0")"/out/workers/slurm/tfwright-*
for program in ?.program; do
    result='{"run": "%s", "task": %d, "status": 0, "seconds": 1}'
    printf "$result" "$(basename "$PWD")" "${program%.program}" > "${program%.program}.json"
done
echo 17
"""
    programs(sbatch=ends, squeue="true")
    recipes = ["demo", "demo-cuda", "linux-custom-op"]
    said: list[str] = []
    done = builds.build_remotely(settings, "slurm", recipes, OPTIONS, lambda _: None, said.append)
    assert fetched == recipes
    assert [line.partition(":")[0] for line in said] == recipes
    (room,) = (tmp_path / "out/workers/slurm").iterdir()
    assert [path.read_text("utf-8") for path in sorted(room.glob("*.program"))] == [
        f"build --recipe {recipe} --wait --until=source --offline\n"
        for recipe in ("demo", "linux-custom-op")
    ]
    assert [given.state for given in done] == ["built", "refused", "built"]
    refused = done[1]
    assert "Bazel could not be found" in refused.detail
    assert refused.remedy == "Copy it."


# The queue is a folder, with a file for each task.
QUEUE = """\
cd "$(dirname "$0")/room"
mkdir -p queue
echo "$@" >> submitted
for range in $(printf '%s\\n' "$@" | sed -n 's/^--array=//p' | tr , ' '); do
    for number in $(seq "${range%-*}" "${range#*-}"); do touch queue/$number; done
done
[ "$(ls queue | wc -l)" -le 3 ] || touch exceeded
echo 17
"""
# Task 0 is lost. Once it was submitted again, one task ends before each look.
ENDING = f"""{ROOM}
if [ "$(wc -l < submitted)" = 1 ]; then
    rm -f queue/0
else
    set -- $(ls queue)
    leave $1
    rm "queue/$1"
fi
for number in $(ls queue); do echo "$number RUNNING None"; done
"""


@pytest.mark.medium
def test_no_more_tasks_than_the_limit_are_submitted_also_after_one_was_lost(
    tmp_path: Path, programs: Programs
) -> None:
    programs(sbatch=QUEUE, squeue=ENDING)
    ended = run_by_slurm(tmp_path, "abcd")
    assert sorted(result.number for result in ended) == [0, 1, 2, 3]
    assert not (tmp_path / "room/exceeded").exists()


@pytest.mark.medium
def test_a_slurm_that_takes_no_more_is_asked_again_while_tasks_run(
    tmp_path: Path, programs: Programs
) -> None:
    submit = f"""{ROOM}
echo x >> asked
case $(wc -l < asked) in
    1) echo 17 ;;
    2) echo sbatch: error: Socket timed out >&2; exit 1 ;;
    *) leave 0 1; echo 18 ;;
esac
"""
    programs(sbatch=submit, squeue="echo '0 RUNNING None'")
    assert [result.status for result in run_by_slurm(tmp_path, "a", "b")] == [0, 0]


@pytest.mark.medium
def test_a_task_that_slurm_loses_each_time_is_given_up_as_lost(
    tmp_path: Path, job: RecipeJob, programs: Programs
) -> None:
    submit = 'cd "$(dirname "$0")"/workers/slurm/tfwright-*; echo n1 >> 0.nodes; echo x >> submitted; echo 17'
    forgets = "echo slurm_load_jobs error: Invalid job id specified >&2; exit 1"
    programs(sbatch=submit, squeue=forgets)
    settings = HostFile(build_out=tmp_path, slurm=table_of(tmp_path))
    heard: list[Assignment] = []
    done = WorkSchedule(["a"], (), {})
    hand_out.run_by_slurm(settings, done, lambda _: job, program, heard.append, print)
    assert done.assignments["a"].state == "lost"
    assert "each time before it left a result" in done.assignments["a"].detail
    (submitted,) = (tmp_path / "workers/slurm").glob("*/submitted")
    assert len(submitted.read_text("utf-8").splitlines()) == slurm.ATTEMPTS
    assert [given.recipe for given in heard] == ["a"]


@pytest.mark.medium
def test_while_slurm_does_not_answer_no_task_counts_as_lost(
    tmp_path: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = f"""{ROOM}
echo x >> asked
[ "$(wc -l < asked)" -lt 9 ] || leave 0
echo slurm_load_jobs error: Unable to contact slurm controller >&2
exit 1
"""
    submit = 'cd "$(dirname "$0")/room"; echo x >> submitted; echo 17'
    programs(sbatch=submit, squeue=away)
    monkeypatch.setattr(slurm, "ARRIVAL_SECONDS", 0.0)
    assert [result.status for result in run_by_slurm(tmp_path, "a")] == [0]
    assert (tmp_path / "room/submitted").read_text("utf-8") == "x\n"


def test_a_task_that_left_nothing_at_all_points_to_a_directory_that_is_not_shared(
    tmp_path: Path,
) -> None:
    log = tmp_path / "0.log"
    result = SlurmResult(0, slurm.LOST, (), 0.0, log)
    ended = hand_out.after_task(Assignment("a"), result)
    assert (ended.state, ended.log) == ("lost", "")
    assert str(tmp_path) in ended.detail
    assert "Share build_out" in ended.remedy
    begun = hand_out.after_task(Assignment("a"), replace(result, nodes=("n1",)))
    assert "before it left a result" in begun.detail
    assert begun.log == str(log)


def finished(folder: Path) -> Path:
    """Return a wheel as a worker has it, with its provenance next to it."""
    wheel = write_wheel(folder)
    said = {"subject": [{"digest": {"sha256": files.sha256(wheel)}}]}
    make_file(wheel.with_name(wheel.name + statement.SUFFIX), json.dumps(said))
    return wheel


def built_by_worker(tmp_path: Path, wheel: Path, programs: Programs) -> Assignment:
    """Build a recipe on a worker that prints the path of a wheel; return what became of it."""
    checkout = make_folder(tmp_path / "checkout")
    (checkout / "tasks.py").write_text(f"print({str(wheel)!r})\n", "utf-8")
    programs(ssh=LOCAL_SSH.format(home=tmp_path))
    worker = a_host("one", "one", str(checkout), python=sys.executable, build_out="~/there")
    return built_by(HostFile(build_out=tmp_path / "out", workers=(worker,)), "publish")


@pytest.mark.medium
@pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync")
def test_the_wheel_of_a_worker_comes_here_with_its_provenance(
    tmp_path: Path, programs: Programs
) -> None:
    wheel = finished(tmp_path / "there")
    given = built_by_worker(tmp_path, wheel, programs)
    assert (given.state, given.detail) == ("built", "")
    house = tmp_path / "out/wheelhouse"
    assert (house / wheel.name).read_bytes() == wheel.read_bytes()
    assert (house / f"{wheel.name}{statement.SUFFIX}").is_file()
    assert wheel.name in (house / "simple/demo/index.html").read_text("utf-8")
    assert list((tmp_path / "out/workers/incoming").iterdir()) == []
    # The next time, what took longest is begun first.
    took = json.loads((tmp_path / "out/workers/last.json").read_text("utf-8"))
    assert [*took] == ["demo"]


@pytest.mark.medium
@pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync")
@pytest.mark.parametrize(
    ("damage", "said"),
    [("provenance", "came without its provenance"), ("wheel", "and was built as")],
)
def test_a_wheel_that_is_not_what_its_worker_says_is_put_nowhere(
    tmp_path: Path, programs: Programs, damage: str, said: str
) -> None:
    wheel = finished(tmp_path / "there")
    damaged = {"wheel": wheel, "provenance": wheel.with_name(wheel.name + statement.SUFFIX)}
    damaged[damage].write_bytes(b"{}")
    given = built_by_worker(tmp_path, wheel, programs)
    assert given.state == "lost"
    assert said in given.detail
    assert not (tmp_path / "out/wheelhouse").exists()
