"""What ssh, rsync and sbatch are asked to do, and what a Slurm task leaves."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tfwright.commands import distribute
from tfwright.tools.remote import slurm, ssh
from tfwright.tools.remote.slurm import SlurmSite
from tfwright.tools.remote.ssh import RemoteBuild, RemoteHost
from tfwright.workers import schedule
from tfwright.workers.schedule import Assignment

HOST = RemoteHost("one", "build@one.example", "/srv/tfwright", host_file="/etc/tfwright.toml")


def test_a_build_asks_nothing_and_ends_with_the_connection() -> None:
    argv = ssh.build_command(HOST, "demo", ("--until", "source")).argv
    assert argv[0] == "ssh"
    assert "BatchMode=yes" in argv
    assert "-tt" in argv
    program = "python3 tasks.py build --recipe demo --until source"
    variables = "TERM=dumb TFWRIGHT_HOST_FILE=/etc/tfwright.toml"
    assert argv[-1] == f"cd /srv/tfwright && exec env {variables} {program}"


@pytest.mark.parametrize("name", ["a b", "$(reboot)", "'; reboot; '", "-oProxyCommand=x"])
def test_a_recipe_name_is_one_word_for_the_shell_on_the_other_side(name: str) -> None:
    script = ssh.build_command(HOST, name, ()).argv[-1].partition("exec env ")[2]
    said = subprocess.run(
        ("/bin/sh", "-c", f"printf '%s\\n' {script}"), capture_output=True, check=True
    )
    assert name in said.stdout.decode().splitlines()


def test_an_address_is_never_an_option() -> None:
    argv = ssh.build_command(HOST, "demo", ()).argv
    assert argv[argv.index("build@one.example") - 1] == "--"


def test_a_lost_worker_is_replaced_and_the_rest_is_built() -> None:
    def build(given: Assignment) -> RemoteBuild:
        lost = given.worker == "dying"
        return RemoteBuild(1.0, lost=lost, failure="no answer" if lost else "")

    begun = schedule.planned(["a", "b", "c"], ["dying", "steady"], {})
    done = distribute.run(begun, build, lambda _: None)
    assert {each.worker for each in done.assignments.values()} == {"steady"}
    assert {each.state for each in done.assignments.values()} == {"built"}
    assert done.assignments["a"].lost == ("dying",)


def site(tmp_path: Path) -> SlurmSite:
    (tmp_path / "tasks.py").write_text("import sys; print(sys.argv); sys.exit(4)\n", "utf-8")
    (tmp_path / "room").mkdir()
    return SlurmSite(tmp_path, tmp_path / "room", sys.executable, most=3, options=("--mem=1G",))


def test_a_task_builds_the_recipe_of_its_number_and_leaves_its_result(tmp_path: Path) -> None:
    given = site(tmp_path)
    (given.room / "recipes").write_text("first\nsecond $x\n", "utf-8")
    script = given.room / "job.sh"
    script.write_text(slurm.script_of(given, ("--until", "source")), "utf-8")
    env = {"SLURM_ARRAY_TASK_ID": "1", "SLURMD_NODENAME": "n1", "PATH": "/usr/bin:/bin"}
    subprocess.run(("/bin/sh", script), env=env, check=True)
    result = json.loads((given.room / "1.json").read_text("utf-8"))
    assert result["status"] == 4
    assert result["worker"].endswith("/n1")
    said = (given.room / "1.log").read_text("utf-8")
    assert said == "['tasks.py', 'build', '--recipe', 'second $x', '--until', 'source']\n"


def test_the_array_has_a_task_for_each_recipe_and_a_limit(tmp_path: Path) -> None:
    argv = slurm.submission(site(tmp_path), Path("job.sh"), 40).argv
    assert "--array=0-39%3" in argv
    assert "--requeue" in argv
    assert argv[-2:] == ("--mem=1G", "job.sh")
