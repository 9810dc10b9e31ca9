"""Commands of tfwright run by Slurm: a job array with a task each, whose results are files.

Only sbatch, squeue and scancel are run here. A result is read as soon as its task has left it, so
that the first wheel does not wait for the last one.
"""

import os
import shlex
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfwright.errors import ToolError
from tfwright.tools import files, json_text
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command

PASSED_ON = ("HOME", "PATH", "USER", "LOGNAME", "SLURM_CONF")
ATTEMPTS = 3
"""How often a task is submitted that Slurm ended without a result."""
INTERVAL_SECONDS = 2.0
"""Between two looks at the results and the queue."""
ARRIVAL_SECONDS = 15.0
"""How long a result may take from the node's view of a shared directory to ours: NFS keeps what it
knows of a directory for some seconds."""
LOST = -1
PENDING = "PENDING"
"""The state of a task that waits for a node."""
SCRIPT = """\
#!/bin/sh
# Runs the command whose number is this task's; Slurm starts it again on another node if one dies.
number=$SLURM_ARRAY_TASK_ID
echo "$SLURMD_NODENAME" >> {room}/"$number.nodes"
cd {directory} || exit 3
begun=$(date +%s)
exec > {room}/"$number.log" 2>&1
eval "set -- $(sed -n "$((number + 1))p" {programs})"
{variables}{python} tasks.py "$@"
status=$?
printf '{{"status": %d, "seconds": %d}}\\n' "$status" "$(($(date +%s) - begun))" \\
    > {room}/"$number.part"
mv {room}/"$number.part" {room}/"$number.json"
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

    number: int
    """Which program it ran, from 0."""
    status: int
    """Exit status of the program; LOST where the task left none."""
    nodes: tuple[str, ...]
    """Nodes that ran it, in order; all but the last were lost."""
    seconds: float
    log: Path


Hear = Callable[[SlurmResult], None]
"""Receives the result of each task when it ends."""
Note = Callable[[str], None]
"""Receives a line on what Slurm does with the job, whenever that changes."""


def run(
    site: SlurmSite, programs: Sequence[Sequence[str]], hear: Hear, note: Note
) -> None:
    """Run commands of tfwright as a job array, until each one ended.

    A task that Slurm ended without a result (scancel, a time limit, a dead node that it does not
    replace) is submitted again. On Ctrl-C the array is cancelled. Raises ToolError if sbatch
    refuses the job.
    """
    site.room.mkdir(parents=True, exist_ok=True)
    lines = [shlex.join(program) for program in programs]
    files.write(site.room / "programs", "".join(f"{line}\n" for line in lines))
    script = site.room / "job.sh"
    files.write(script, script_of(site), 0o755)
    left = list(range(len(programs)))
    for attempt in range(ATTEMPTS):
        if not left:
            return
        lost = _array(site, script, left, hear, note)
        left = [result.number for result in lost]
        if attempt == ATTEMPTS - 1:
            for result in lost:
                hear(result)


def submission(site: SlurmSite, script: Path, numbers: Sequence[int]) -> Command:
    """Return the command that submits the array."""
    limit = f"%{site.most}" if site.most else ""
    argv = (
        "sbatch",
        "--parsable",
        "--requeue",
        f"--array={_ranges(numbers)}{limit}",
        "--job-name=tfwright",
        f"--output={site.room}/slurm-%a.out",
        # A task that is started again goes on in the same files.
        "--open-mode=append",
        *site.options,
        str(script),
    )
    return Command(argv, site.room, _environment())


def script_of(site: SlurmSite) -> str:
    """Return the script of the array."""
    variables = (
        f"TFWRIGHT_HOST_FILE={shlex.quote(site.host_file)} "
        if site.host_file
        else ""
    )
    return SCRIPT.format(
        directory=shlex.quote(str(site.directory)),
        programs=shlex.quote(str(site.room / "programs")),
        room=shlex.quote(str(site.room)),
        variables=variables,
        python=shlex.quote(site.python),
    )


def _array(
    site: SlurmSite,
    script: Path,
    numbers: Sequence[int],
    hear: Hear,
    note: Note,
) -> Sequence[SlurmResult]:
    """Run one array to its end; return the tasks without a result."""
    log = site.room / "sbatch.log"
    remedy = "Look at what sbatch says, and at [slurm] options in the host file."
    said = runner.run(submission(site, script, numbers), log, remedy=remedy)
    # With --parsable it prints "ID" or "ID;CLUSTER", after any warning.
    job = said.split()[-1].partition(";")[0] if said.split() else ""
    if not job.isdigit():
        raise ToolError(f"sbatch named no job: {said.strip()!r}", remedy=remedy)
    try:
        return _followed(site, job, numbers, hear, note)
    except BaseException:
        # Slurm would go on without us, and write into directories that the next start uses.
        runner.answer(Command(("scancel", job), site.room, _environment()))
        raise


def _followed(
    site: SlurmSite, job: str, numbers: Sequence[int], hear: Hear, note: Note
) -> Sequence[SlurmResult]:
    left = set(numbers)
    gone_since: float | None = None
    reasons: Counter[str] = Counter()
    while left:
        time.sleep(INTERVAL_SECONDS)
        for number in sorted(left):
            result = _result(site.room, number)
            if result.status != LOST:
                left.discard(number)
                hear(result)
        tasks = _queued(job, site.room)
        # While slurmctld is away, nothing is known to have changed.
        if tasks is None:
            continue
        before, reasons = reasons, _reasons(tasks)
        # Not whenever a number changes: the results tell of that.
        if reasons.keys() - before.keys():
            note(_told(job, reasons))
        if tasks:
            gone_since = None
            continue
        gone_since = gone_since or time.monotonic()
        if time.monotonic() - gone_since > ARRIVAL_SECONDS:
            break
    return [_result(site.room, number) for number in sorted(left)]


def _queued(job: str, room: Path) -> Sequence[str] | None:
    """Return state and reason of each task of a job that has not ended, as Slurm names them.

    None if squeue fails because slurmctld is away: that does not mean that the job has ended.
    """
    log = room / "squeue.log"
    argv = ("squeue", "--noheader", "--array", "--format=%T %r", f"--jobs={job}")
    status = runner.attempt(
        Command(argv, room, _environment()), log, remedy="Install Slurm."
    )
    said = log.read_text("utf-8", "replace")
    if status == 0:
        return [line.strip() for line in said.splitlines() if line.strip()]
    # It forgets a job some minutes after its end: MinJobAge in slurm.conf.
    return [] if "Invalid job id" in said else None


def _reasons(tasks: Sequence[str]) -> Counter[str]:
    """Return why tasks wait, as Slurm names it, and how many do."""
    pairs = (task.partition(" ") for task in tasks)
    # It names none yet for a task that it has not looked at.
    return Counter(
        reason
        for state, _, reason in pairs
        if state == PENDING and reason != "None"
    )


def _told(job: str, reasons: Counter[str]) -> str:
    """Say why tasks wait: Slurm lets a task wait for ever for what no node has."""
    counted = [f"{count} ({reason})" for reason, count in reasons.items()]
    return f"Slurm job {job}: waiting tasks: {', '.join(counted)}"


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers as --array takes them: ``0-39``, ``3,7``."""
    first, last = numbers[0], numbers[-1]
    if last - first == len(numbers) - 1:
        return f"{first}-{last}"
    return ",".join(map(str, numbers))


def _result(room: Path, number: int) -> SlurmResult:
    log = room / f"{number}.log"
    lost = SlurmResult(number, LOST, _nodes(room / f"{number}.nodes"), 0.0, log)
    try:
        said = json_text.parsed((room / f"{number}.json").read_text("utf-8"))
        return replace(
            lost, status=int(said["status"]), seconds=float(said["seconds"])
        )
    except (OSError, ValueError, LookupError, TypeError):
        # A task that was killed leaves no result, or a part of one.
        return lost


def _nodes(path: Path) -> tuple[str, ...]:
    try:
        return tuple(path.read_text("utf-8", "replace").split())
    except OSError:
        return ()


def _environment() -> Mapping[str, str]:
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}
