"""`invoke build` with several recipes: one after the other here, or on several machines."""

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal, get_args

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from tfwright.documents.host_file import HostFile, WorkerTable
from tfwright.errors import Evidence, HostError, RecipeError, TfwrightError, ToolError, WheelError
from tfwright.index import write as index
from tfwright.pipeline.job import RecipeJob
from tfwright.tools import files, json_text
from tfwright.tools.process import file_lock
from tfwright.tools.remote import ssh
from tfwright.tools.remote.slurm import Note
from tfwright.tools.remote.ssh import RemoteBuild
from tfwright.wheel.seal import statement
from tfwright.workers import hand_out, supply
from tfwright.workers.hand_out import OnAssignment
from tfwright.workers.schedule import Assignment, WorkSchedule

Place = Literal["here", "workers", "slurm"]
PLACES: tuple[Place, ...] = get_args(Place)
BuildHere = Callable[[str], None]
"""Builds one recipe on this host, to its end; raises TfwrightError if that fails."""


def program_of(recipe: str, options: Mapping[str, object], *, supplied: bool) -> tuple[str, ...]:
    """Return the command that builds a recipe on a worker, with the options of `invoke build`.

    Without a server where this host has `supplied` all inputs.
    """
    arguments = [
        f"--{name}={options[name]}" for name in ("until", "again", "jobs") if options[name]
    ]
    flags = {
        "--fresh": options["fresh"],
        "--offline": options["offline"] or supplied,
        "--no-cache": not options["cache"],
    }
    # A lost worker may hold the recipe's lock in a shared directory for a moment longer.
    named = ("build", "--recipe", recipe, "--wait")
    return (*named, *arguments, *(flag for flag, value in flags.items() if value))


def place_of(settings: HostFile, asked: str, recipes: Sequence[str]) -> Place:
    """Return where recipes are built: as asked, else where the host file says that many can be.

    Raises RecipeError if the place is unknown.
    """
    for place in PLACES:
        if asked == place:
            return place
    if asked:
        raise RecipeError(
            f"{asked!r} is not a place where recipes can be built",
            remedy="Give --on here, --on workers or --on slurm.",
        )
    # Without being asked, a single recipe stays on this host, where its stages can be resumed.
    if len(recipes) > 1 and settings.workers:
        return "workers"
    return "slurm" if len(recipes) > 1 and settings.slurm else "here"


def build_locally(
    settings: HostFile, recipes: Sequence[str], build: BuildHere, on_assignment: OnAssignment
) -> list[Assignment]:
    """Build recipes one after the other; one that fails does not keep the others from it."""
    assignments = []
    for recipe in dict.fromkeys(recipes):
        begun = time.monotonic()
        assignment = Assignment(recipe, "running", "here")
        on_assignment(assignment)
        result = RemoteBuild(0.0)
        try:
            build(recipe)
        except TfwrightError as fault:
            result = RemoteBuild(0.0, fault.exit_status, fault.what, remedy=fault.remedy)
        result = replace(result, seconds=time.monotonic() - begun)
        assignments.append(assignment.after("failed" if result.failure else "built", result))
        on_assignment(assignments[-1])
    _record_times(settings, assignments)
    return assignments


def exit_status(assignments: Sequence[Assignment]) -> int:
    """Return the status of the builds that failed if it is the same one, else ToolError's."""
    statuses = {
        each.status or ToolError.exit_status for each in assignments if each.state != "built"
    }
    if len(statuses) > 1:
        return ToolError.exit_status
    return statuses.pop() if statuses else 0


def build_remotely(  # noqa: PLR0913, PLR0917 what is built, and where
    settings: HostFile,
    place: Place,
    recipes: Sequence[str],
    options: Mapping[str, object],
    on_assignment: OnAssignment,
    note: Note,
) -> list[Assignment]:
    """Build recipes on the workers of the host file, or by its Slurm; `options` are the command's.

    A lost worker's recipe goes to another one. `note` receives what keeps Slurm's tasks waiting.
    Raises HostError if the host file names no machine, ToolError if Slurm refuses the job.
    """
    if options["verified_by"]:
        raise RecipeError(
            "--verified-by can be written only by the host that builds",
            remedy="Leave it out, or build with --on here.",
        )

    def job_of(recipe: str) -> RecipeJob:
        return RecipeJob.of(recipe, settings, offline=bool(options["offline"]))

    if place == "slurm":
        supplied = hand_out.slurm_of(settings).inputs
        task_of = partial(program_of, options=options, supplied=supplied)
        schedule = WorkSchedule(recipes, (), _last_times(settings))
        hand_out.run_by_slurm(settings, schedule, job_of, task_of, on_assignment, note)
        return _record_times(settings, [*schedule.assignments.values()])
    hosts = hand_out.hosts(settings)
    folder = _folder(settings)
    # Another run may build the same recipe on the same worker.
    files.remove_old(folder / "logs", supply.LEFT_DAYS)
    run = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"

    def build(assignment: Assignment) -> RemoteBuild:
        recipe, host = assignment.recipe, hosts[assignment.worker]

        def collect(done: RemoteBuild) -> None:
            if done.failure or options["until"] != "publish":
                return
            if host.build_out:
                _collect(host, done, settings, recipe)
                return
            wheel = settings.build_out / "wheelhouse" / PurePosixPath(done.printed).name
            if not wheel.is_file():
                raise HostError(
                    f"{host.name} built {wheel.name}, which is not in the wheelhouse of this host",
                    remedy=f"Let both share {settings.build_out}; or name the build_out that "
                    f"{host.name} uses in its [[workers]] table, and tfwright copies the wheel.",
                )

        return hand_out.run_on_worker(
            host,
            program_of(recipe, options, supplied=host.supplied),
            # A recipe may be named by a path, whose slashes would make directories.
            folder / "logs" / run / f"{recipe.replace('/', '_')}-{assignment.worker}.log",
            job=lambda: job_of(recipe),
            collect=collect,
        )

    schedule = WorkSchedule(recipes, tuple(hosts), _last_times(settings))
    hand_out.run(schedule, build, on_assignment)
    return _record_times(settings, [*schedule.assignments.values()])


def _collect(host: WorkerTable, done: RemoteBuild, settings: HostFile, recipe: str) -> None:
    """Bring the wheel that a worker built, with what lies next to it, into the wheelhouse.

    Raises ToolError if rsync fails, WheelError if the wheel is not what its provenance says.
    """
    wheel = PurePosixPath(host.directory, done.printed)
    try:
        parse_wheel_filename(wheel.name)
    except InvalidWheelFilename as fault:
        raise WheelError(
            f"{host.name} named no wheel: {wheel.name!r}",
            remedy=f"Update the checkout of tfwright on {host.name}: a build prints the path of "
            "its wheel last. Its log has what it printed.",
            evidence=Evidence(log=Path(done.log) if done.log else None),
        ) from fault
    arriving = _folder(settings) / "incoming"
    files.remove_old(arriving, supply.LEFT_DAYS)
    arriving.mkdir(parents=True, exist_ok=True)
    incoming = Path(tempfile.mkdtemp(prefix=f"{host.name}-", dir=arriving))
    names = [wheel.name, wheel.name + statement.SUFFIX, wheel.name + statement.SIGNED_SUFFIX]
    log = Path(done.log).with_name(f"{wheel.name}-{host.name}.rsync.log")
    ssh.fetch(host, str(wheel.parent), incoming, log, names)
    verify(incoming / wheel.name)
    wheelhouse = settings.build_out / "wheelhouse"
    wheelhouse.mkdir(parents=True, exist_ok=True)
    # Builds on this host refresh the same index.
    with file_lock.locked(wheelhouse / ".lock", "invoke build", wait=True):
        # The wheel last: a reader never sees it without its provenance.
        for path in sorted(incoming.iterdir(), key=lambda path: path.suffix == ".whl"):
            files.move(path, wheelhouse / path.name, 0o644)
        index.refresh(wheelhouse, {wheel.name: {"recipe": recipe}}, packages="")
    files.remove(incoming)


def verify(wheel: Path) -> None:
    """Compare a wheel with the digest in the statement next to it. Raises WheelError."""
    remedy = "Build the recipe again; look at the disk of the worker."
    try:
        provenance = json_text.parse(
            wheel.with_name(wheel.name + statement.SUFFIX).read_text("utf-8")
        )
        digest = provenance["subject"][0]["digest"]["sha256"]
        found = files.sha256(wheel)
    except (OSError, ValueError, LookupError, TypeError) as fault:
        raise WheelError(f"{wheel.name} came without its provenance", remedy=remedy) from fault
    if digest != found:
        what = f"{wheel.name} came as {found[:12]}…, and was built as {str(digest)[:12]}…"
        raise WheelError(what, remedy=remedy)


def _folder(settings: HostFile) -> Path:
    return settings.build_out / "workers"


def _last_times(settings: HostFile) -> Mapping[str, float]:
    """Return the seconds of the last builds, by recipe."""
    # Times only choose the order of the recipes: without the file, any order will do.
    known = json_text.load_object(_folder(settings) / "last.json")
    return {recipe: took for recipe, took in known.items() if isinstance(took, float)}


def _record_times(settings: HostFile, assignments: list[Assignment]) -> list[Assignment]:
    """Write down how long each recipe took, for the order of the next time; return them."""
    built = {each.recipe: each.seconds for each in assignments if each.state == "built"}
    seconds = {**_last_times(settings), **built}
    files.write(_folder(settings) / "last.json", json.dumps(seconds, indent=1))
    return assignments
