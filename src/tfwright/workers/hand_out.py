"""Hands work out to machines, over OpenSSH or by Slurm, and brings home what they made.

The work is a command of tfwright for each recipe: a build, or a build order of a night. What a
command means, and what is copied before and after it, is up to the caller.
"""

import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tfwright.documents.host_file import HostFile, SlurmTable, WorkerTable
from tfwright.errors import HostError, RecipeError, TfwrightError, ToolError
from tfwright.pipeline.job import RecipeJob
from tfwright.tools.remote import slurm, ssh
from tfwright.tools.remote.slurm import Note, SlurmResult
from tfwright.tools.remote.ssh import RemoteBuild
from tfwright.workers import supply
from tfwright.workers.schedule import Assignment, State, WorkSchedule

Build = Callable[[Assignment], RemoteBuild]
"""Runs a build on the assignment's worker, to its end."""
OnAssignment = Callable[[Assignment], None]
"""Receives an assignment whenever its state changes."""


def hosts(settings: HostFile) -> Mapping[str, WorkerTable]:
    """Return the workers of the host file, by name. Raises HostError if it names none."""
    if not settings.workers:
        raise HostError("The host file names no worker", remedy="Add [[workers]]: docs/cluster.md.")
    return {table.name: table for table in settings.workers}


def slurm_of(settings: HostFile) -> SlurmTable:
    """Return the Slurm of the host file. Raises HostError if it names none."""
    if settings.slurm is None:
        raise HostError("The host file has no [slurm]", remedy="Add it: docs/cluster.md.")
    return settings.slurm


def run(schedule: WorkSchedule, build: Build, on_assignment: OnAssignment) -> None:
    """Start builds while workers are idle, until no worker can take another recipe.

    `build` runs in threads; `on_assignment` is called in the caller's own thread.
    """
    ended: queue.Queue[tuple[Assignment, RemoteBuild | BaseException]] = queue.Queue()

    def work(started: Assignment) -> None:
        try:
            ended.put((started, build(started)))
        except BaseException as fault:  # noqa: BLE001 raised below, in the caller's thread
            ended.put((started, fault))

    while True:
        for assignment in schedule.start():
            on_assignment(assignment)
            # A daemon: after Ctrl-C a build that hangs on a lost host must not keep this alive.
            threading.Thread(target=work, args=(assignment,), daemon=True).start()
        if not schedule.running:
            break
        assignment, result = ended.get()
        if isinstance(result, BaseException):
            raise result
        on_assignment(schedule.finish(assignment.recipe, result))
    schedule.close()


def run_on_worker(  # noqa: PLR0913 a command, and what surrounds it
    host: WorkerTable,
    program: Sequence[str],
    log: Path,
    *,
    job: Callable[[], RecipeJob],
    send: Callable[[], None] = lambda: None,
    collect: Callable[[RemoteBuild], None],
) -> RemoteBuild:
    """Run a command of tfwright on a worker, with what it needs; bring home what it made.

    A worker that gets its inputs from this host is first given those of the job. `send` and
    `collect` copy the rest. Any error is part of the result.
    """
    try:
        if host.supplied and (failed := supply.send(host, job(), log)):
            return failed
        send()
        done = ssh.run(host, program, log)
        # A lost worker cannot be asked for its result.
        if done.lost:
            return done
        try:
            collect(done)
        except HostError as fault:
            # This host has no room for it, as it has none for what another worker makes.
            status = ToolError.exit_status
            return replace(done, status=status, failure=fault.what, remedy=fault.remedy)
    except TfwrightError as fault:
        # A bad recipe or a full disk keeps its own status. Otherwise the worker counts as lost:
        # rsync could not reach it, or it gave other bytes than it said.
        known = isinstance(fault, RecipeError | HostError)
        status = fault.exit_status if known else ssh.LOST
        return RemoteBuild(0.0, status, fault.what, remedy=fault.remedy)
    return done


def run_by_slurm(  # noqa: PLR0913, PLR0917 what is built, and how
    settings: HostFile,
    schedule: WorkSchedule,
    job_of: Callable[[str], RecipeJob],
    program_of: Callable[[str], Sequence[str]],
    on_assignment: OnAssignment,
    note: Note,
) -> None:
    """Run one command for each recipe by Slurm, in the order of the schedule.

    `program_of` returns the command. Where nodes have no network, this host first brings the inputs
    of `job_of`, while the recipes before it run; one for which either raises TfwrightError is
    refused. Raises HostError if the host file has no [slurm], ToolError if Slurm refuses the job.
    """
    table = slurm_of(settings)
    order: list[str] = []

    def record(assignment: Assignment) -> None:
        schedule.assignments[assignment.recipe] = assignment
        on_assignment(assignment)

    def commands(recipes: Iterable[str]) -> Sequence[Sequence[str]]:
        found = []
        for recipe in recipes:
            try:
                if table.inputs:
                    supply.fetch_inputs(recipe, job_of(recipe), note)
                found.append(program_of(recipe))
            except TfwrightError as fault:
                record(Assignment(recipe).after("refused", supply.without_inputs(fault)))
            else:
                order.append(recipe)
        return found

    # Without inputs to be brought, all tasks are one array.
    recipes = list(schedule.assignments)
    batches = [[recipe] for recipe in recipes] if table.inputs else [recipes]
    with slurm.run_folder(settings.build_out / "workers" / "slurm", note) as folder:
        slurm.run(
            table,
            folder,
            map(commands, batches),
            lambda result: record(after_task(Assignment(order[result.number]), result)),
            note,
        )


def after_task(assignment: Assignment, result: SlurmResult) -> Assignment:
    """Return an assignment after its task ended."""
    *lost, worker = result.nodes or ("",)
    folder, log = result.log.parent, str(result.log)
    ask = f"sacct --name={folder.name}, or the log of slurmctld."
    state: State = "built"
    failure = remedy = ""
    if result.status == slurm.LOST and result.nodes:
        state, remedy = "lost", f"Ask Slurm why: {ask}"
        failure = "Slurm ended the task each time before it left a result"
    elif result.status == slurm.LOST:
        state, log = "lost", ""
        failure = f"No task began, or the nodes do not see {folder}"
        remedy = f"Share build_out with all nodes by this path; else ask Slurm why: {ask}"
    elif result.status:
        state, failure, remedy = "failed", ssh.failure(result.log, result.status), ssh.READ
    done = RemoteBuild(result.seconds, max(0, result.status), failure, remedy=remedy, log=log)
    return assignment.after(state, done, worker=worker, lost=tuple(lost))
