"""`invoke build` with several recipes: one after the other here, or on several machines."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal, Self, get_args

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from tfwright.documents.host_file import HostFile
from tfwright.errors import Evidence, HostError, RecipeError, TfwrightError, ToolError, WheelError
from tfwright.index import write as index
from tfwright.pipeline.job import RecipeJob
from tfwright.tools import files, json_text
from tfwright.tools.process import file_lock
from tfwright.tools.remote import ssh
from tfwright.tools.remote.slurm import Note
from tfwright.tools.remote.ssh import RemoteBuild, RemoteHost
from tfwright.wheel.seal import envelope, statement
from tfwright.workers import hand_out, schedule, supply
from tfwright.workers.hand_out import Hear
from tfwright.workers.schedule import Assignment, Trouble, WorkSchedule

Place = Literal["here", "workers", "slurm"]
PLACES: tuple[Place, ...] = get_args(Place)
BuildHere = Callable[[str], None]
"""Builds one recipe on this host, to its end; raises TfwrightError if that fails."""


@dataclass(frozen=True)
class RemoteOptions:
    """The options that a worker's build is started with."""

    arguments: tuple[str, ...]
    """As they are typed."""

    @classmethod
    def of(cls, options: Mapping[str, object]) -> Self:
        """Return what a worker is given of the options of `invoke build`.

        Raises RecipeError for one that writes into this host's recipes.
        """
        if options["verified_by"]:
            raise RecipeError(
                "--verified-by can be written only by the host that builds",
                remedy="Leave it out, or build with --on here.",
            )
        named = ("until", "again", "jobs")
        arguments = [f"--{name}={options[name]}" for name in named if options[name]]
        arguments += [f"--{name}" for name in ("fresh", "offline") if options[name]]
        return cls((*arguments, *(() if options["cache"] else ("--no-cache",))))

    @property
    def offline(self) -> bool:
        """Whether no build may ask a server."""
        return "--offline" in self.arguments

    def supplied(self) -> Self:
        """Return the options of a build whose inputs this host has sent."""
        if self.offline:
            return self
        return replace(self, arguments=(*self.arguments, "--offline"))

    @property
    def publishes(self) -> bool:
        """Whether a build that ends well has made a wheel."""
        return "--until=publish" in self.arguments

    def program(self, recipe: str) -> tuple[str, ...]:
        """Return the command that builds a recipe on a worker.

        A lost worker may hold the recipe's lock in a shared directory for a moment longer, so the
        next one waits for it.
        """
        return ("build", "--recipe", recipe, "--wait", *self.arguments)


def place_of(settings: HostFile, asked: str, recipes: Sequence[str]) -> Place:
    """Return where recipes are built: as asked, else where the host file says that many can be.

    Raises RecipeError if the place is unknown.
    """
    if asked:
        return _place_named(asked)
    # Without being asked, a single recipe stays on this host, where its stages can be resumed.
    if len(recipes) > 1 and settings.workers:
        return "workers"
    return "slurm" if len(recipes) > 1 and settings.slurm else "here"


def _place_named(asked: str) -> Place:
    for place in PLACES:
        if asked == place:
            return place
    raise RecipeError(
        f"{asked!r} is not a place where recipes can be built",
        remedy="Give --on here, --on workers or --on slurm.",
    )


def here(settings: HostFile, recipes: Sequence[str], build: BuildHere, hear: Hear) -> WorkSchedule:
    """Build recipes one after the other; one that fails does not keep the others from it."""
    done = dict(schedule.planned(recipes, (), {}).assignments)
    for recipe in recipes:
        begun = time.monotonic()
        started = Assignment(recipe, "running", "here")
        hear(started)
        state, failure = _built(build, recipe)
        seconds = time.monotonic() - begun
        ended = Assignment(recipe, state, "here", seconds=seconds)
        done[recipe] = ended.with_trouble(failure)
        hear(done[recipe])
    finished = WorkSchedule(done, ())
    _keep(settings, finished)
    return finished


def exit_status(done: WorkSchedule) -> int:
    """Return the status of the builds that failed if it is the same one, else ToolError's."""
    statuses = {
        each.status or ToolError.exit_status
        for each in done.assignments.values()
        if each.state != "built"
    }
    if len(statuses) > 1:
        return ToolError.exit_status
    return statuses.pop() if statuses else 0


def _built(build: BuildHere, recipe: str) -> tuple[schedule.State, Trouble]:
    try:
        build(recipe)
    except TfwrightError as fault:
        return "failed", Trouble(fault.what, fault.remedy, status=fault.exit_status)
    return "built", Trouble("")


def on_workers(
    settings: HostFile, recipes: Sequence[str], options: RemoteOptions, hear: Hear
) -> WorkSchedule:
    """Build recipes on the workers of the host file. A lost worker's recipe goes to another one.

    Raises HostError if the host file names no worker.
    """
    hosts = hand_out.hosts(settings)
    logs = _room(settings) / "logs"

    def build(given: Assignment) -> RemoteBuild:
        # A recipe may be named by a path, whose slashes would make directories.
        log = logs / f"{given.recipe.replace('/', '_')}-{given.worker}.log"
        host = hosts[given.worker]
        asked = options
        try:
            if host.supplied:
                job = RecipeJob.of(given.recipe, settings, offline=options.offline)
                if failed := supply.send(host, job, log):
                    return failed
                asked = options.supplied()
            done = ssh.run(host, asked.program(given.recipe), log)
            if not done.failure and host.build_out and options.publishes:
                return _collected(host, done, settings, given.recipe)
        except TfwrightError as fault:
            return ssh.undone(fault)
        return done

    begun = schedule.planned(recipes, tuple(hosts), _took(settings))
    done = hand_out.run(begun, build, hear)
    _keep(settings, done)
    return done


def by_slurm(
    settings: HostFile, recipes: Sequence[str], options: RemoteOptions, hear: Hear, note: Note
) -> WorkSchedule:
    """Build recipes by Slurm; `note` receives what keeps tasks waiting.

    Raises HostError if the host file has no [slurm], ToolError if Slurm refuses the job.
    """

    def program_of(recipe: str) -> Sequence[str]:
        if not (settings.slurm and settings.slurm.inputs):
            return options.program(recipe)
        job = RecipeJob.of(recipe, settings, offline=options.offline)
        supply.bring(recipe, job, note)
        return options.supplied().program(recipe)

    begun = schedule.planned(recipes, (), _took(settings))
    done = hand_out.by_slurm(settings, begun, program_of, hear, note)
    _keep(settings, done)
    return done


def _collected(host: RemoteHost, done: RemoteBuild, settings: HostFile, recipe: str) -> RemoteBuild:
    """Bring the wheel of a build here; return what became of the build then."""
    try:
        _collect(host, done, settings, recipe)
    except HostError as fault:
        return ssh.unkept(done, fault)
    return done


def _collect(host: RemoteHost, done: RemoteBuild, settings: HostFile, recipe: str) -> None:
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
    incoming = _room(settings) / "incoming" / host.name
    files.remove(incoming)
    incoming.mkdir(parents=True)
    names = [wheel.name, wheel.name + statement.SUFFIX, wheel.name + envelope.SUFFIX]
    log = _room(settings) / "logs" / f"{wheel.name}-{host.name}.rsync.log"
    ssh.fetch_files(host, str(wheel.parent), names, incoming, log)
    verify(incoming / wheel.name)
    _publish(incoming, settings.build_out / "wheelhouse", recipe)
    files.remove(incoming)


def verify(wheel: Path) -> None:
    """Compare a wheel with the digest in the statement next to it. Raises WheelError."""
    remedy = "Build the recipe again; look at the disk of the worker."
    try:
        said = json_text.parsed(wheel.with_name(wheel.name + statement.SUFFIX).read_text("utf-8"))
        digest = said["subject"][0]["digest"]["sha256"]
        found = files.sha256(wheel)
    except (OSError, ValueError, LookupError, TypeError) as fault:
        raise WheelError(f"{wheel.name} came without its provenance", remedy=remedy) from fault
    if digest != found:
        what = f"{wheel.name} came as {found[:12]}…, and was built as {str(digest)[:12]}…"
        raise WheelError(what, remedy=remedy)


def _publish(incoming: Path, wheelhouse: Path, recipe: str) -> None:
    """Give files their place in the wheelhouse, and list the wheel in its index."""
    wheelhouse.mkdir(parents=True, exist_ok=True)
    # Builds on this host refresh the same index.
    notes = {path.name: {"recipe": recipe} for path in incoming.glob("*.whl")}
    with file_lock.held(wheelhouse / ".lock", "invoke build", wait=True):
        # The wheel last: a reader never sees it without its provenance.
        for path in sorted(incoming.iterdir(), key=lambda path: path.suffix == ".whl"):
            files.move(path, wheelhouse / path.name, 0o644)
        index.refresh(wheelhouse, notes, replace=True, packages="")


def _room(settings: HostFile) -> Path:
    return settings.build_out / "workers"


def _took(settings: HostFile) -> Mapping[str, float]:
    """Return the seconds of the last builds, by recipe."""
    try:
        rows = json_text.parsed((_room(settings) / "last.json").read_text("utf-8"))
        return {str(row["recipe"]): float(row["seconds"]) for row in rows if row["seconds"]}
    except (OSError, ValueError, LookupError, TypeError):
        # Times only choose the order of the recipes: without the file, any order will do.
        return {}


def _keep(settings: HostFile, done: WorkSchedule) -> None:
    """Write down how long each recipe took, for the order of the next time."""
    took = dict(_took(settings))
    built = [each for each in done.assignments.values() if each.state == "built"]
    took |= {each.recipe: each.seconds for each in built}
    rows = [{"recipe": recipe, "seconds": seconds} for recipe, seconds in took.items()]
    files.write(_room(settings) / "last.json", json.dumps(rows, indent=1))
