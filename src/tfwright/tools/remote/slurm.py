"""Builds by Slurm: a job array with a task for each recipe, results as files they leave."""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfwright.errors import ToolError
from tfwright.tools import files
from tfwright.tools.process import runner
from tfwright.tools.process.runner import Command

PASSED_ON = ("HOME", "PATH", "USER", "LOGNAME", "SLURM_CONF")
SCRIPT = """\
#!/bin/sh
# Builds the recipe whose number is this task's; Slurm starts it again on another node if one dies.
cd {directory} || exit 3
recipe=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" {recipes})
begun=$(date +%s)
exec > {room}/"$SLURM_ARRAY_TASK_ID.log" 2>&1
{variables}{python} tasks.py build --recipe "$recipe" {options}
status=$?
printf '{{"status": %d, "worker": "%s", "seconds": %d}}\\n' \\
    "$status" "$(hostname)/$SLURMD_NODENAME" "$(($(date +%s) - begun))" \\
    > {room}/"$SLURM_ARRAY_TASK_ID.part"
mv {room}/"$SLURM_ARRAY_TASK_ID.part" {room}/"$SLURM_ARRAY_TASK_ID.json"
"""


@dataclass(frozen=True)
class SlurmSite:
    """How this site's Slurm is asked."""

    directory: Path
    """A checkout of tfwright that all nodes see."""
    room: Path
    """An empty directory that all nodes see."""
    python: str
    host_file: str = ""
    options: tuple[str, ...] = ()
    """Further options of sbatch: partition, time, memory, dependency."""
    most: int = 0
    """Tasks that run at once; 0 leaves it to Slurm."""


@dataclass(frozen=True)
class SlurmResult:
    """What became of a task."""

    status: int
    """Exit status of the build; -1 where the task left none."""
    worker: str
    seconds: float
    log: Path


def build(site: SlurmSite, recipes: Sequence[str], options: tuple[str, ...]) -> list[SlurmResult]:
    """Submit an array and wait for its end; return the results in the order of the recipes.

    Raises ToolError if sbatch refuses the job.
    """
    site.room.mkdir(parents=True, exist_ok=True)
    files.write(site.room / "recipes", "".join(f"{recipe}\n" for recipe in recipes))
    script = site.room / "job.sh"
    files.write(script, script_of(site, options), 0o755)
    log = site.room / "sbatch.log"
    # --wait ends with the worst status of all tasks: what each one did, its file says.
    status = runner.attempt(submission(site, script, len(recipes)), log, remedy="Install Slurm.")
    results = [_result(site.room, number) for number in range(len(recipes))]
    if status != 0 and all(result.status < 0 for result in results):
        raise ToolError(
            "Slurm did not run the builds",
            remedy="Look at what sbatch says, and at [slurm] options in the host file.",
        )
    return results


def submission(site: SlurmSite, script: Path, count: int) -> Command:
    """Return the command that submits the array and waits for it."""
    limit = f"%{site.most}" if site.most else ""
    argv = (
        "sbatch",
        "--wait",
        "--requeue",
        f"--array=0-{count - 1}{limit}",
        "--job-name=tfwright",
        f"--output={site.room}/slurm-%a.out",
        *site.options,
        str(script),
    )
    return Command(argv, site.room, _environment())


def script_of(site: SlurmSite, options: tuple[str, ...]) -> str:
    """Return the script of the array."""
    variables = f"TFWRIGHT_HOST_FILE={shlex.quote(site.host_file)} " if site.host_file else ""
    return SCRIPT.format(
        directory=shlex.quote(str(site.directory)),
        recipes=shlex.quote(str(site.room / "recipes")),
        room=shlex.quote(str(site.room)),
        variables=variables,
        python=shlex.quote(site.python),
        options=shlex.join(options),
    )


def _result(room: Path, number: int) -> SlurmResult:
    log = room / f"{number}.log"
    try:
        said = json.loads((room / f"{number}.json").read_text("utf-8"))
        return SlurmResult(int(said["status"]), str(said["worker"]), float(said["seconds"]), log)
    except (OSError, ValueError, LookupError, TypeError):
        return SlurmResult(-1, "", 0.0, log)


def _environment() -> Mapping[str, str]:
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}
