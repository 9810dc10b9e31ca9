"""Commands of tfwright run by Slurm: job arrays with a task each, whose results are files.

Only sbatch, squeue and scancel are run here. A result is read as soon as its task has left it, so
that the first wheel does not wait for the last one.
"""

import shlex
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

from tfwright.documents.host_file import SlurmTable
from tfwright.errors import HostError, ToolError
from tfwright.tools import files, json_text
from tfwright.tools.process import file_lock, runner
from tfwright.tools.process.command import Command, caller_variables

PASSED_ON = ("HOME", "PATH", "USER", "LOGNAME", "SLURM_CONF")
ATTEMPTS = 3
"""How often a task is submitted that Slurm ended without a result."""
INTERVAL_SECONDS = 2.0
"""Between two looks at the results and the queue."""
ARRIVAL_SECONDS = 15.0
"""How long a result may take from the node's view of a shared directory to ours: NFS keeps what it
knows of a directory for some seconds."""
JOB = "tfwright"
"""How the name of each job begins."""
RUNNING = "running"
"""The file in a run's folder that is locked while the run goes on, and goes with its last task."""
FAILED_LAUNCH = "launch failed"
"""Why Slurm holds a task for ever whose node did not take it, as when slurmctld starts again."""
ENDING_LOOKS = 45
"""How often cancelled tasks are asked for, until they count as not to be ended."""
KEPT_DAYS = 14
"""How long the folder of a run, with its logs, is kept."""
LOST = -1
SCRIPT = """\
#!/bin/sh
# Runs the command whose number is this task's; Slurm starts it again on another node if one dies.
number=$SLURM_ARRAY_TASK_ID
echo "$SLURMD_NODENAME" >> {folder}/"$number.nodes"
cd {directory} || exit 3
# Room for the result, for a build that fills the disk.
printf %200s > {folder}/"$number.part"
begun=$(date +%s)
exec > {folder}/"$number.log" 2>&1
eval "set -- $(cat {folder}/"$number.program")"
{variables}{python} tasks.py "$@"
status=$?
printf '{{"run": "{run}", "task": %d, "status": %d, "seconds": %d}}\\n' \\
    "$number" "$status" "$(($(date +%s) - begun))" 1<> {folder}/"$number.part"
mv {folder}/"$number.part" {folder}/"$number.json"
"""


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


class _LeftResult(BaseModel):
    """What SCRIPT writes at the end of a task."""

    run: str
    task: int
    status: int
    seconds: float


OnResult = Callable[[SlurmResult], None]
"""Receives the result of each task when it ends."""
Note = Callable[[str], None]
"""Receives a line on what Slurm does with the job, whenever that changes."""


@contextmanager
def run_folder(home: Path, note: Note) -> Iterator[Path]:
    """Give an empty folder below `home` to one run, whose name is that of its Slurm jobs.

    What killed runs left in the queue is cancelled first: it would write into the same places.
    """
    for left in sorted(home.glob(f"{JOB}-*/{RUNNING}")):
        # Of a run that goes on, or of another user, whose tasks are not ours to cancel.
        with suppress(HostError), file_lock.locked(left, "cancelling a dead run's tasks"):
            if _cancel_jobs(left.parent):
                note(f"Slurm: cancelled what a killed run left, {left.parent.name}")
                left.unlink()
            else:
                note(f"Slurm does not answer: tasks of {left.parent.name} may still run")
    files.remove_old(home, KEPT_DAYS)
    home.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{JOB}-{time.strftime('%Y%m%d-%H%M%S')}-", dir=home))
    folder.chmod(0o755)
    with file_lock.locked(folder / RUNNING, "building by Slurm"):
        try:
            yield folder
        finally:
            # Slurm would go on without us; a restarted slurmctld may hold a task that has ended.
            # Where it does not answer, the next run cancels; where scancel is missing, what ended
            # this run says more.
            with suppress(HostError):
                if _cancel_jobs(folder):
                    (folder / RUNNING).unlink()


def _cancel_jobs(folder: Path) -> bool:
    """Cancel the jobs of a run, and wait for their end; return whether Slurm knows none any more.

    By name: a run may be killed between sbatch's answer and any note of the job's number.
    """
    # Two signals: Slurm sends the second one after KillWait, 30 seconds unless it is set.
    name, log = f"--name={folder.name}", folder / "cancel.log"
    for _ in range(ENDING_LOOKS):
        for argv in (("scancel", name), ("squeue", "--noheader", name)):
            if runner.attempt(_slurm_command(folder, *argv), log, remedy="Install Slurm."):
                return False
        if not log.read_text("utf-8", "replace").strip():
            return True
        time.sleep(INTERVAL_SECONDS)
    return False


def run(
    table: SlurmTable,
    folder: Path,
    batches: Iterable[Sequence[Sequence[str]]],
    on_result: OnResult,
    note: Note,
) -> None:
    """Run commands of tfwright, until each one ended; each batch of them is a job array.

    `folder` is that of `run_folder`, and all nodes see it. A batch is submitted before the next one
    is asked for. With a limit, what is over it waits here.

    A task that Slurm ended without a result (scancel, a time limit, a dead node that it does not
    replace) is submitted again at once. Raises ToolError if sbatch refuses the job.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tasks = _Tasks(table, folder, on_result, note)
    files.write(folder / "job.sh", batch_script(table, folder), 0o755)
    for batch in batches:
        tasks.add(batch)
        tasks.update()
    while tasks.jobs or tasks.waiting:
        time.sleep(INTERVAL_SECONDS)
        tasks.update()


def submit_command(table: SlurmTable, folder: Path, numbers: Sequence[int]) -> Command:
    """Return the command that submits the array."""
    first, last = numbers[0], numbers[-1]
    # As --array takes them: ``0-39``, ``3,7``.
    row = last - first == len(numbers) - 1
    wanted = f"{first}-{last}" if row else ",".join(map(str, numbers))
    return _slurm_command(
        folder,
        "sbatch",
        "--requeue",
        # Then ours: by array, name and files the tasks and their results are found again.
        *table.options,
        "--parsable",
        f"--array={wanted}",
        f"--job-name={folder.name}",
        f"--output={folder}/slurm-%a.out",
        # A task that is started again goes on in the same files.
        "--open-mode=append",
        str(folder / "job.sh"),
    )


def batch_script(table: SlurmTable, folder: Path) -> str:
    """Return the script of the array."""
    variables = f"TFWRIGHT_HOST_FILE={shlex.quote(table.host_file)} " if table.host_file else ""
    return SCRIPT.format(
        directory=shlex.quote(str(table.directory)),
        folder=shlex.quote(str(folder)),
        run=folder.name,
        variables=variables,
        python=shlex.quote(table.python),
    )


@dataclass
class _Tasks:
    """The tasks that left no result yet."""

    table: SlurmTable
    folder: Path
    on_result: OnResult
    note: Note
    waiting: list[int] = field(default_factory=list)
    """Numbers of the tasks that are not submitted, in their order."""
    added: int = 0
    jobs: dict[int, str] = field(default_factory=dict)
    """By number, the job that the task belongs to."""
    attempts: Counter[int] = field(default_factory=Counter)
    gone: dict[int, float] = field(default_factory=dict)
    """By number, since when Slurm does not know the task any more."""
    reasons: frozenset[str] = frozenset()
    """Why tasks wait, as it was noted last."""

    def add(self, programs: Sequence[Sequence[str]]) -> None:
        """Take in commands; they are numbered as they come."""
        for number, program in enumerate(programs, self.added):
            # A file each: a node may still see a shared one as it was for the tasks before.
            files.write(self.folder / f"{number}.program", f"{shlex.join(program)}\n")
            self.waiting.append(number)
        self.added += len(programs)

    def update(self) -> None:
        """Take results, and submit what waits or was ended by Slurm without one."""
        for number in sorted(self.jobs):
            self._take_result(number)
        queued = _task_states(set(self.jobs.values()), self.folder)
        # While slurmctld is away, nothing is known to have changed.
        if queued is None:
            return
        pairs = [task.partition(" ") for task in queued.values()]
        # Slurm lets a task wait for ever for what no node has. It names no reason yet for a task
        # that it has not looked at.
        reasons = Counter(why for state, _, why in pairs if state == "PENDING" and why != "None")
        # Not whenever a number changes: the results tell of that.
        if reasons.keys() - self.reasons:
            counted = [f"{count} ({why})" for why, count in reasons.items()]
            self.note(f"Slurm: waiting tasks: {', '.join(counted)}")
        self.reasons = frozenset(reasons)
        now = time.monotonic()
        held = {number for number, what in queued.items() if FAILED_LAUNCH in what}
        missing = self.jobs.keys() - (queued.keys() - held)
        self.gone = {number: self.gone.get(number, now) for number in missing}
        again = []
        for number, since in sorted(self.gone.items()):
            # A result may still come.
            if now - since <= ARRIVAL_SECONDS:
                continue
            del self.gone[number]
            if number in held:
                self._cancel(number)
            if self.attempts[number] < ATTEMPTS:
                del self.jobs[number]
                again.append(number)
            else:
                self._take_result(number, lost=True)
        self.waiting = [*again, *self.waiting]
        self._submit()

    def _submit(self) -> None:
        """Submit what waits, as far as the limit allows."""
        # Not left to Slurm, whose limit is for each array: a lost task gets one of its own.
        most = self.table.most
        space = most - len(self.jobs) if most else len(self.waiting)
        numbers, rest = self.waiting[:space], self.waiting[space:]
        if not numbers:
            return
        try:
            job = self._submit_array(sorted(numbers))
        except ToolError:
            # Slurm may be away, or take no more for now. What runs is not given up for it.
            if self.jobs:
                return
            raise
        self.waiting = rest
        self.jobs |= dict.fromkeys(numbers, job)
        self.attempts.update(numbers)

    def _submit_array(self, numbers: Sequence[int]) -> str:
        """Submit tasks as one array; return its number."""
        log = self.folder / "sbatch.log"
        remedy = "Look at what sbatch says, and at [slurm] options in the host file."
        command = submit_command(self.table, self.folder, numbers)
        if status := runner.attempt(command, log, remedy="Install Slurm."):
            fault = runner.exit_error(command, status, log, remedy=remedy)
            if isinstance(fault, ToolError):
                fault = ToolError(
                    f"sbatch refused the job: {runner.last_line(log)}",
                    remedy=remedy,
                    evidence=fault.evidence,
                )
            raise fault
        printed = log.read_text("utf-8", "replace")
        # With --parsable it prints "ID" or "ID;CLUSTER", after any warning.
        job = printed.split()[-1].partition(";")[0] if printed.split() else ""
        if not job.isdigit():
            raise ToolError(f"sbatch named no job: {printed.strip()!r}", remedy=remedy)
        return job

    def _take_result(self, number: int, *, lost: bool = False) -> None:
        """Pass on the result of a task; one that is lost has none."""
        result = _read_result(self.folder, number)
        if lost or result.status != LOST:
            # The result may be that of an attempt which Slurm had lost.
            if self.attempts[number] > 1:
                self._cancel(number)
            del self.jobs[number]
            self.on_result(result)

    def _cancel(self, number: int) -> None:
        runner.short_output(_slurm_command(self.folder, "scancel", f"{self.jobs[number]}_{number}"))


def _task_states(jobs: Collection[str], folder: Path) -> Mapping[int, str] | None:
    """Return state and reason of each task that has not ended, as Slurm names them, by number.

    None if squeue fails because slurmctld is away: that does not mean that a job has ended.
    """
    if not jobs:
        return {}
    log = folder / "squeue.log"
    wanted = f"--jobs={','.join(sorted(jobs))}"
    asked = _slurm_command(folder, "squeue", "--noheader", "--array", "--format=%K %T %r", wanted)
    status = runner.attempt(asked, log, remedy="Install Slurm.")
    printed = log.read_text("utf-8", "replace")
    if status != 0:
        # It forgets a job some minutes after its end: MinJobAge in slurm.conf.
        return {} if "Invalid job id" in printed else None
    found = (line.strip().partition(" ") for line in printed.splitlines())
    return {int(number): what for number, _, what in found if number.isdigit()}


def _read_result(folder: Path, number: int) -> SlurmResult:
    log = folder / f"{number}.log"
    nodes: tuple[str, ...] = ()
    with suppress(OSError):
        nodes = tuple((folder / f"{number}.nodes").read_text("utf-8", "replace").split())
    # A task that was killed leaves no result, or a part of one.
    left = json_text.load_or_none(folder / f"{number}.json", _LeftResult)
    if left is None or (left.run, left.task) != (folder.name, number):
        return SlurmResult(number, LOST, nodes, 0.0, log)
    return SlurmResult(number, left.status, nodes, left.seconds, log)


def _slurm_command(folder: Path, *argv: str) -> Command:
    return Command(argv, folder, caller_variables(PASSED_ON))
