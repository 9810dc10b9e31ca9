"""Builds several recipes on several machines, by OpenSSH or Slurm."""

import json
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from tfwright.documents.host_file import HostFile, WorkerTable
from tfwright.errors import HostError, ToolError
from tfwright.tools import files
from tfwright.tools.remote import slurm, ssh
from tfwright.tools.remote.slurm import SlurmResult, SlurmSite
from tfwright.tools.remote.ssh import RemoteBuild, RemoteHost
from tfwright.workers import schedule
from tfwright.workers.schedule import Assignment, WorkSchedule

Build = Callable[[Assignment], RemoteBuild]
"""Runs a build on the assignment's worker, to its end."""
Hear = Callable[[Assignment], None]
"""Receives an assignment whenever its state changes."""


def over_ssh(
    settings: HostFile,
    recipes: Sequence[str],
    options: tuple[str, ...],
    hear: Hear,
) -> WorkSchedule:
    """Build recipes on the workers of the host file. A lost worker's recipe goes to another one.

    Raises HostError if the host file names no worker.
    """
    hosts = {table.name: _host(table) for table in settings.workers}
    if not hosts:
        raise HostError("The host file names no worker", remedy="Add [[workers]]: docs/cluster.md.")
    logs = _room(settings) / "logs"

    def build(given: Assignment) -> RemoteBuild:
        # A recipe may be named by a path, whose slashes would make directories.
        log = logs / f"{given.recipe.replace('/', '_')}-{given.worker}.log"
        host = hosts[given.worker]
        done = ssh.build(host, given.recipe, options, log)
        return _brought(settings, host, done, log.with_suffix(".rsync.log"))

    begun = schedule.planned(recipes, tuple(hosts), _took(settings))
    done = run(begun, build, hear)
    _keep(settings, done)
    return done


def _brought(
    settings: HostFile,
    host: RemoteHost,
    done: RemoteBuild,
    log: Path,
) -> RemoteBuild:
    """Bring the wheels of a good build here; return the build, failed if that fails."""
    # Without a wheelhouse of its own, the worker shares
    # ours, and the wheel is here already.
    if not host.wheelhouse or done.lost or done.failure:
        return done
    try:
        ssh.bring(host, settings.build_out / "wheelhouse", log)
    except ToolError as fault:
        return RemoteBuild(done.seconds, lost=False, failure=fault.what)
    return done


def run(
    begun: WorkSchedule,
    build: Build,
    hear: Hear,
) -> WorkSchedule:
    """Start builds while workers are idle, until no worker can take another recipe."""
    ended: queue.Queue[tuple[Assignment, RemoteBuild]] = queue.Queue()

    def work(given: Assignment) -> None:
        ended.put((given, build(given)))

    current = begun
    # A thread for each build: they only wait for ssh, and one queue orders their ends.
    while not current.over:
        current, started = current.started()
        for given in started:
            hear(given)
            # A daemon: after Ctrl-C a build that hangs on a lost host must not keep this alive.
            threading.Thread(
                target=work,
                args=(given,),
                daemon=True,
            ).start()
        given, result = ended.get()
        if result.lost:
            current = current.lost(given.recipe, result.seconds, result.failure)
        else:
            current = current.ended(given.recipe, result.seconds, result.failure)
        hear(current.assignments[given.recipe])
    return current.closed()


def by_slurm(
    settings: HostFile,
    recipes: Sequence[str],
    options: tuple[str, ...],
    hear: Hear,
) -> WorkSchedule:
    """Build recipes as one job array.

    Raises HostError if the host file has no [slurm], ToolError if Slurm refuses the job.
    """
    table = settings.slurm
    if table is None:
        raise HostError("The host file has no [slurm]", remedy="Add it: docs/cluster.md.")
    room = _room(settings) / "slurm"
    # Results of an earlier job array would pass for those of this one.
    files.remove(room)
    site = SlurmSite(
        table.directory, room, table.python, table.host_file, table.options, table.most
    )
    planned = schedule.planned(recipes, (), _took(settings))
    order = tuple(planned.assignments)
    done = {}
    # Slurm starts array jobs in their order: the longest builds come first.
    for recipe, result in zip(order, slurm.build(site, order, options), strict=True):
        done[recipe] = _assigned(recipe, result)
        hear(done[recipe])
    finished = WorkSchedule(done, ())
    _keep(settings, finished)
    return finished


def _assigned(recipe: str, result: SlurmResult) -> Assignment:
    """Return what became of one job of an array."""
    state: schedule.State = "built"
    if result.status > 0:
        state = "failed"
    elif result.status < 0:
        # No exit status was written: Slurm or its node ended the job.
        state = "lost"
    failure = f"exit status {result.status}, see {result.log}" if result.status else ""
    return Assignment(recipe, state, result.worker, (), result.seconds, failure)


def _host(table: WorkerTable) -> RemoteHost:
    return RemoteHost(**{name: getattr(table, name) for name in RemoteHost.__dataclass_fields__})


def _room(settings: HostFile) -> Path:
    return settings.build_out / "workers"


def _took(settings: HostFile) -> Mapping[str, float]:
    """Return the seconds of the last builds, by recipe."""
    try:
        rows = json.loads((_room(settings) / "last.json").read_text("utf-8"))
        return {str(row["recipe"]): float(row["seconds"]) for row in rows if row["seconds"]}
    except (OSError, ValueError, LookupError, TypeError):
        # Times only choose the order of the recipes: without the file, any order will do.
        return {}


def _keep(settings: HostFile, done: WorkSchedule) -> None:
    rows = [asdict(each) for each in done.assignments.values()]
    files.write(_room(settings) / "last.json", json.dumps(rows, indent=1))
