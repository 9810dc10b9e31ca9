"""Hands work out to machines, over OpenSSH or by Slurm, and takes it back from lost ones.

The work is a command of tfwright for each recipe: a build, or a build order of a night. What a
command means, and what is copied before and after it, is up to the caller.
"""

import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tfwright.documents.host_file import HostFile, SlurmTable, WorkerTable
from tfwright.errors import HostError, TfwrightError
from tfwright.tools import files
from tfwright.tools.remote import slurm, ssh
from tfwright.tools.remote.slurm import Note, SlurmResult, SlurmSite
from tfwright.tools.remote.ssh import RemoteBuild, RemoteHost
from tfwright.workers import schedule
from tfwright.workers.schedule import Assignment, Trouble, WorkSchedule

Build = Callable[[Assignment], RemoteBuild]
"""Runs a build on the assignment's worker, to its end."""
Hear = Callable[[Assignment], None]
"""Receives an assignment whenever its state changes."""


def hosts(settings: HostFile) -> Mapping[str, RemoteHost]:
    """Return the workers of the host file, by name. Raises HostError if it names none."""
    found = {table.name: _host(table) for table in settings.workers}
    if not found:
        raise HostError("The host file names no worker", remedy="Add [[workers]]: docs/cluster.md.")
    return found


def run(begun: WorkSchedule, build: Build, hear: Hear) -> WorkSchedule:
    """Start builds while workers are idle, until no worker can take another recipe.

    `build` runs in threads; `hear` is called in the caller's own thread.
    """
    ended: queue.Queue[tuple[Assignment, RemoteBuild | BaseException]] = queue.Queue()

    def work(given: Assignment) -> None:
        try:
            ended.put((given, build(given)))
        except BaseException as fault:  # noqa: BLE001 raised below, in the caller's thread
            ended.put((given, fault))

    current = begun
    while not current.over:
        current, started = current.started()
        for given in started:
            hear(given)
            # A daemon: after Ctrl-C a build that hangs on a lost host must not keep this alive.
            threading.Thread(target=work, args=(given,), daemon=True).start()
        given, result = ended.get()
        if isinstance(result, BaseException):
            raise result
        current = _after(current, given.recipe, result)
        hear(current.assignments[given.recipe])
    return current.closed()


def _after(current: WorkSchedule, recipe: str, result: RemoteBuild) -> WorkSchedule:
    """Return the schedule after a worker gave its result."""
    # ssh's own status is not the build's.
    status = 0 if result.lost else result.status
    trouble = Trouble(result.failure, result.remedy, result.log, status)
    if result.lost:
        return current.lost(recipe, result.seconds, trouble)
    if result.refused:
        return current.refused(recipe, result.seconds, trouble)
    return current.ended(recipe, result.seconds, trouble if result.failure else None)


def by_slurm(
    settings: HostFile,
    begun: WorkSchedule,
    program_of: Callable[[str], Sequence[str]],
    hear: Hear,
    note: Note,
) -> WorkSchedule:
    """Run one command for each recipe by Slurm, in the order of the schedule.

    `program_of` returns the command. It may first bring the recipe's inputs to this host, while the
    recipes before it run; one for which it raises TfwrightError is refused. Raises HostError if the
    host file has no [slurm], ToolError if Slurm refuses the job.
    """
    table = settings.slurm
    if table is None:
        raise HostError("The host file has no [slurm]", remedy="Add it: docs/cluster.md.")
    room = settings.build_out / "workers" / "slurm"
    # Results of an earlier job array would pass for those of this one.
    files.remove(room)
    order: list[str] = []
    done = dict(begun.assignments)

    def commands(recipes: Iterable[str]) -> Sequence[Sequence[str]]:
        found = []
        for recipe in recipes:
            try:
                found.append(program_of(recipe))
            except TfwrightError as fault:
                failed = ssh.refused(fault)
                why = Trouble(failed.failure, failed.remedy, status=failed.status)
                done[recipe] = Assignment(recipe, "refused").with_trouble(why)
                hear(done[recipe])
            else:
                order.append(recipe)
        return found

    def heard(result: SlurmResult) -> None:
        given = ended(done[order[result.number]], result)
        done[given.recipe] = given
        hear(given)

    # Without inputs to be brought, all tasks are one array.
    batches = [[recipe] for recipe in done] if table.inputs else [list(done)]
    slurm.run(_site(table, room), map(commands, batches), heard, note)
    return WorkSchedule(done, ())


def ended(given: Assignment, result: SlurmResult) -> Assignment:
    """Return an assignment after its task ended."""
    state: schedule.State = "built" if result.status == 0 else "failed"
    state = "lost" if result.status == slurm.LOST else state
    nodes = result.nodes or ("",)
    done = replace(given, state=state, worker=nodes[-1], lost=nodes[:-1], seconds=result.seconds)
    return done.with_trouble(_trouble(result))


def _trouble(result: SlurmResult) -> Trouble:
    """Return what a task that ended says of its failure."""
    log = str(result.log)
    if result.status == slurm.LOST and not result.nodes:
        room = result.log.parent
        return Trouble(
            f"No task began, or the nodes do not see {room}",
            "Share build_out with all nodes by this path; else ask Slurm why: sacct "
            "--name=tfwright, or the log of slurmctld.",
        )
    if result.status == slurm.LOST:
        return Trouble(
            "Slurm ended the task each time before it left a result",
            "Ask Slurm why: sacct --name=tfwright, or the log of slurmctld.",
            log,
        )
    if not result.status:
        return Trouble("", log=log)
    said = ssh.failure(result.log, result.status)
    return Trouble(said, ssh.READ, log, result.status)


def _site(table: SlurmTable, room: Path) -> SlurmSite:
    options = table.options
    return SlurmSite(table.directory, room, table.python, table.host_file, options, table.most)


def _host(table: WorkerTable) -> RemoteHost:
    return RemoteHost(**{name: getattr(table, name) for name in RemoteHost.__dataclass_fields__})
