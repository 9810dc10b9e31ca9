"""The engine: check, skip, run, stop."""

import itertools
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

from tfwright.documents import recipe as recipes
from tfwright.errors import HostError, RecipeError, TfwrightError
from tfwright.pipeline import containers, edits, stamps
from tfwright.pipeline.job import Job, RecipeJob
from tfwright.pipeline.results import HostFacts, Inputs, Tree
from tfwright.pipeline.stage import Known, Result, Results, Stage, Step, Writes
from tfwright.pipeline.stages import PIPELINE, check, fetch
from tfwright.pipeline.stages import source as sources
from tfwright.pipeline.stamps import Took
from tfwright.printable import did_you_mean
from tfwright.progress import SILENCE
from tfwright.tools import disk, files
from tfwright.tools.git.repository import GitRepository
from tfwright.tools.git.work_tree import repository_of
from tfwright.tools.process import file_lock
from tfwright.tools.process.command import Command
from tfwright.tools.process.runner import replace_process, run_on_terminal

PUBLISHED = "stamps/publish.json"
"""Where the publish stage of a recipe leaves its stamp, below the recipe's directory."""


class Decision(NamedTuple):
    """Whether a stage has to run, and why."""

    why: str
    """Why it runs; empty if what it made before still holds."""
    kept: Result | None = None
    """What it made before, if that still holds."""


class Planned(NamedTuple):
    """One line of a plan."""

    stage: Stage
    why: str
    steps: Callable[[], Sequence[Step]]
    """Finds its commands and files: most pages show few of them."""


def build(job: RecipeJob) -> Results:
    """Take a recipe through the pipeline up to the last wanted stage; return what each made.

    Stages whose stamp holds are skipped, except for the one that the job runs again. Raises a
    TfwrightError that names its stage.
    """
    # The lock comes first: --fresh would remove the tree under another build's compiler.
    with recipe_lock(job):
        # Asked before anything is fetched: publish would find out only hours later.
        check_wheel_name(job)
        if job.fresh:
            _remove_outputs(job)
        made = Results()
        for stage in wanted_stages(job):
            decision = decide(stage, job, made, renew=True)
            if decision.kept:
                job.listener.skipped(stage.name)
                made[stage.makes] = decision.kept
                continue
            # Before the run: what changes meanwhile must make the next build run the stage again.
            depends = stamps.part_checksums(stage, job, made)
            job.listener.started(stage.name, decision.why)
            for heading, text in stage.warnings(job):
                job.listener.note(f"{heading}: {text}")
            begun, before = time.monotonic(), _cpu_seconds()
            with _naming_stage(stage, job), disk.as_host_error():
                if stage.makes is Tree:
                    edits.save(job)
                # Before it runs, so that a crash leaves no false stamp.
                stamps.path(job, stage.name).unlink(missing_ok=True)
                if stage.name == job.again:
                    files.remove(job.places.configured)
                _clear_home(job.places.home)
                with _network_closed(job, stage), containers.stage_container(job, stage.name):
                    made[stage.makes] = stage.run(job, made)
                seconds = time.monotonic() - begun
                # The stamp is written last, so it never speaks of a stage that was interrupted.
                if stage.cached:
                    took = Took(seconds, _cpu_seconds() - before)
                    stamps.write(job, stage, depends, made[stage.makes], took)
            job.listener.finished(stage.name, seconds)
        return made


def prepare_tree(job: RecipeJob) -> tuple[HostFacts, Inputs, Tree]:
    """Return what ./configure runs with, for a caller that holds the recipe's lock.

    Of all inputs only the tree's commit, Bazel and the packages of Python are brought.
    """
    # A build with nothing to do needs none of it.
    from tfwright.pipeline import external

    edits.save(job)
    recipe, source = job.recipe, job.recipe.source
    repository = external.fetch_commit(job.job, source)
    # What it notes is for a build.
    host = check.run(replace(job.job, listener=SILENCE), recipe)
    inputs = Inputs(
        mirror=repository,
        commit=source.commit,
        epoch=GitRepository(repository).epoch(source.commit),
        programs=fetch.obtain_programs(job.job, recipe.bazel, recipe.host, None, host),
    )
    return host, inputs, sources.run(job.job, source, recipe.fetch, inputs)


@contextmanager
def _naming_stage(stage: Stage, job: RecipeJob) -> Iterator[None]:
    """Let an error say in which stage of which recipe it was raised."""
    try:
        yield
    except TfwrightError as fault:
        fault.stage, fault.recipe = stage.name, job.argument
        raise


@contextmanager
def recipe_lock(job: RecipeJob) -> Iterator[None]:
    """Keep every other command away from the recipe's directory while the block runs."""
    # Not every command has --wait, and a remedy must be one that can be typed.
    remedy = file_lock.REMEDY if job.wait is None else "Wait until that has ended, or add --wait."
    doing = f"on recipe {job.name}"
    with file_lock.locked(job.places.lock, doing, wait=bool(job.wait), remedy=remedy):
        yield


def check_wheel_name(job: RecipeJob) -> None:
    """Refuse a first build whose wheel would replace the one of another recipe in the wheelhouse.

    Raises RecipeError naming the other recipe.
    """
    # Asked only once for a recipe: its own earlier wheel is meant to be replaced.
    if job.until != "publish" or (job.places.own / PUBLISHED).exists():
        return
    # A directory may be left of a recipe that was renamed or removed.
    stamps = job.places.build_out.glob(f"*/{PUBLISHED}")
    known = {stamp.parents[1].name for stamp in stamps}.intersection(recipes.names())
    for other in recipes.readable_recipes(sorted(known - {job.name})):
        if other.wheel_identity == job.recipe.wheel_identity:
            raise RecipeError(
                f"The wheel of {job.name} would replace the one of {other.name}: both have the "
                "same file name",
                remedy="Set package.project_name in one of the recipes, or build them with "
                "different host files, so that each has a build_out of its own.",
            )


def plan(job: RecipeJob, *, blocked: bool = False) -> Iterator[Planned]:
    """Say what `build` would do, stage by stage, without doing any of it.

    A stage that keeps nothing only looks, and is run: what the rest depends on is then known. What
    lies behind any other stage that runs cannot be known yet: it is said to follow that one, and is
    kept after all if the result turns out to be the same. On a host that is `blocked`, the check
    would refuse the recipe, so it is not run, and everything follows it.
    """
    made = Results()
    # Only for showing commands: what earlier builds made may no longer hold.
    earlier = stamps.last_results(job, PIPELINE)
    for stage in wanted_stages(job):
        missing = [kind for kind in stage.needs if kind not in made]
        if missing:
            maker = next(other for other in PIPELINE if other.makes is missing[0])
            why = f"follows {maker.name}"
        else:
            decision = decide(stage, job, made)
            why = decision.why
            if decision.kept:
                made[stage.makes] = decision.kept
            elif not (stage.cached or blocked):
                with containers.stage_container(job, stage.name):
                    made[stage.makes] = stage.run(job, made)
        known = earlier if missing else {**earlier, **made}
        yield Planned(stage, why, partial(_steps, stage, job, known))


def _steps(stage: Stage, job: RecipeJob, made: Known) -> Sequence[Step]:
    """Return what a stage does, after the start of the container that it does it in."""
    return (*containers.steps(job, stage.name), *stage.steps(job, made))


def wanted_stages(job: Job) -> list[Stage]:
    """Return the stages up to the job's last one."""
    return list(PIPELINE[: _stage_names().index(job.until) + 1])


def decide(stage: Stage, job: RecipeJob, made: Results, *, renew: bool = False) -> Decision:
    """Decide whether `stage` has to run.

    Nothing is changed, but for the states of artefacts that were hashed again, with `renew`.
    """
    if stage.name == job.again or not stage.cached:
        return Decision("asked for again" if stage.name == job.again else "runs every time")
    stamp = stamps.read(job, stage.name)
    if stamp is None:
        return Decision("no earlier result")
    # A stamp keeps its result as plain JSON, whose fields another version may not know.
    try:
        result = stage.makes.model_validate(stamp.result)
    except ValueError:
        return Decision("its stamp is from another version of tfwright")
    # The cheap questions first: digests at hand, then the state of files, then walks of the tree.
    if change := stamps.first_change(stamp, stamps.part_checksums(stage, job, made)):
        # Stamps on disk name a result by its class, and people know it by its stage.
        names = {stamps.part_name(other.makes): f"the result of {other.name}" for other in PIPELINE}
        part, how = change
        return Decision(f"{names.get(part, part)} {how}")
    seen = stamps.states(result)
    if why := stamps.damage(stamp, result, seen) or stage.damage(job, result):
        return Decision(why)
    if renew:
        stamps.renew(job, stage, stamp, seen)
    return Decision("", result)


def _clear_home(home: Path) -> None:
    """Leave nothing in the home of programs that would steer one: no .pydistutils.cfg, no pip.conf.

    The Bazel that ./configure asks for its version unpacks itself there each time: one that was
    damaged meanwhile would stop every later build. The settings of git stay; compile writes them.
    """
    # A link could lead to the home of a person, where nothing may be removed.
    if home.is_symlink() or not home.is_dir():
        files.remove(home)
    home.mkdir(parents=True, exist_ok=True)
    for path in home.iterdir():
        if path.name != ".gitconfig":
            files.remove(path)


@contextmanager
def _network_closed(job: RecipeJob, stage: Stage) -> Iterator[None]:
    """Take the network away from the programs of an offline build, which proves that it needs none.

    The check makes nothing, and a container has no network by itself.
    """
    from tfwright.tools.process import isolation

    # An enclosure costs a few namespaces, so it is opened only where a program may run.
    if not job.offline or not stage.cached or containers.has_container(job, stage.name):
        yield
    elif obstacle := isolation.isolation_obstacle():
        job.listener.note(f"Programs of this stage have a network: {obstacle}")
        yield
    else:
        with isolation.without_network():
            yield


def _cpu_seconds() -> float:
    """Return the processor seconds of this process and of its ended children."""
    # The fifth number is elapsed time, not that of a processor.
    return sum(os.times()[:4])


def clean(job: Job, *, caches: bool = False) -> None:
    """Remove what was built of a recipe, which may be gone or broken by now; the wheelhouse stays.

    The mirrors, the vault and the build cache belong to all recipes and go only with `caches`.
    Raises HostError, and removes nothing, if a command works with what would be removed.
    """
    places = job.places
    with ExitStack() as held:
        held.enter_context(file_lock.locked(places.lock, f"on recipe {job.name}"))
        if caches:
            # Builds of every other recipe read the mirrors and the vault, too.
            for lock in places.build_out.glob("*/lock"):
                if lock != places.lock:
                    held.enter_context(file_lock.locked(lock, "removing the caches"))
        _remove_outputs(job)
        shared = (places.git, places.vault, job.host_file.cache_directory)
        for path in shared if caches else ():
            files.remove(path)


def _remove_outputs(job: Job) -> None:
    """Remove what was built of a recipe whose lock is held."""
    edits.save(job)
    places = job.places
    for path in (
        # First: a clean that is interrupted must leave no stamp of files that are gone.
        places.stamps,
        places.tree,
        repository_of(places.tree),
        places.patched,
        repository_of(places.patched),
        places.readings,
        places.configured,
        places.bazel,
        places.asked,
        places.dist,
        places.logs,
    ):
        files.remove(path)


def check_stages(until: str, again: str = "") -> None:
    """Raise RecipeError unless both are stages, and `again` is not after `until`."""
    last = _stage_names().index(stage_named(until).name)
    if again and _stage_names().index(stage_named(again).name) > last:
        raise RecipeError(
            f"Stage {again!r} is not run again by a build that ends with {until!r}",
            remedy=f"Add --until {again}, or a later stage.",
        )


def parse_jobs(text: str) -> int | None:
    """Return the number of jobs that the user typed; None if the user typed nothing.

    Raises RecipeError unless the text is a whole number from 1 to 9999.
    """
    if not text:
        return None
    # [0-9] and not \d, which digits of other scripts match as well.
    if not re.fullmatch(r"[0-9]{1,4}", text) or int(text) == 0:
        raise RecipeError(
            f"--jobs {text!r} is not a number of jobs",
            remedy=(
                "Give a whole number from 1 on, or leave it out: then memory and processors decide."
            ),
        )
    return int(text)


def _stage_names() -> list[str]:
    return [stage.name for stage in PIPELINE]


def stage_named(name: str) -> Stage:
    """Return a stage by its name; raise RecipeError with the nearest one if there is none."""
    for stage in PIPELINE:
        if stage.name == name:
            return stage
    raise RecipeError(
        f"Unknown stage {name!r}{did_you_mean(name, _stage_names())}",
        remedy=f"The stages are: {', '.join(_stage_names())}.",
    )


OF_A_BUILD = ("--build_event_json_file=", "--profile=", "--disk_cache=", "--remote_")
"""Options of Bazel that say where the record of a build goes, or which cache tfwright serves."""


def open_shell(job: RecipeJob, name: str) -> NoReturn:
    """Become a shell in a stage's directory, with the environment of the stage's first command."""
    stage = stage_named(name)
    steps = stage.steps(job, stamps.last_results(job, PIPELINE))
    command = next((step for step in steps if isinstance(step, Command)), None)
    if command is None:
        raise RecipeError(
            f"Stage {name!r} runs no program, so it has no environment to enter",
            remedy="Choose configure, compile, nccl or package.",
        )
    if not command.cwd.is_dir():
        raise HostError(
            f"{command.cwd} is not there yet",
            remedy=f"Run 'invoke build --recipe {job.argument} --until source' first.",
        )
    # Bazel does not start without its rc file, which the stage itself writes when it runs.
    for step in steps[: steps.index(command)]:
        if isinstance(step, Writes) and not step.path.exists():
            files.write(step.path, step.content)
    terminal = {
        "TERM": os.environ.get("TERM", "dumb"),
        "PS1": f"({job.name} {name}) \\w $ ",
        **bazel_function(command),
    }
    # The user's own start-up files would set PATH, and so another environment than the stage's.
    shell = ("/bin/bash", "--norc", "--noprofile")
    entered = Command(shell, command.cwd, {**command.env, **terminal})
    if containers.has_container(job, name):
        from tfwright.tools.container.engine import running_container

        containers.pull_image(job)
        with running_container(containers.plan(job, name)) as container:
            sys.exit(run_on_terminal(container.command(entered, terminal=True, echo=True)))
    replace_process(entered)


def bazel_function(command: Command) -> dict[str, str]:
    """Return a variable that makes ``bazel``, typed in bash, the Bazel of a command.

    It has the same options. With others Bazel starts another server, with another output base, or
    compiles everything again.
    """
    program, *arguments = command.argv
    if not Path(program).name.startswith("bazel"):
        return {}
    # "bazel --startup build --option -- //target"
    verb = next(number for number, word in enumerate(arguments) if not word.startswith("--"))
    startup, rest = arguments[:verb], arguments[verb + 1 :]
    leading_options = itertools.takewhile(lambda word: word.startswith("--") and word != "--", rest)
    options = [word for word in leading_options if not word.startswith(OF_A_BUILD)]
    text = f"""() {{
    case $1 in
        build | test | run | aquery | cquery) set -- "$1" {shlex.join(options)} "${{@:2}}" ;;
    esac
    {shlex.join([program, *startup])} "$@"
}}"""
    # This is how bash hands functions on to other shells.
    return {"BASH_FUNC_bazel%%": text}
