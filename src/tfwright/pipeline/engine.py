"""The engine: check, skip, run, stop."""

import itertools
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

from tfwright.documents import spelling
from tfwright.errors import HostError, RecipeError, TfwrightError
from tfwright.pipeline import containers, rivals, stamps
from tfwright.pipeline.job import BuildRequest, Job
from tfwright.pipeline.stage import Result, Results, Stage, Step
from tfwright.pipeline.stages import PIPELINE
from tfwright.pipeline.stamps import Seen, Stamp, Took
from tfwright.tools import disk, files
from tfwright.tools.git.work_tree import repository_of
from tfwright.tools.process import file_lock
from tfwright.tools.process.command import Command
from tfwright.tools.process.runner import become


class Kept(NamedTuple):
    """What a stage made before, and still holds."""

    result: Result
    stamp: Stamp
    seen: Mapping[str, Seen]
    """The states of its artefacts now."""


class Decision(NamedTuple):
    """Whether a stage has to run, and why."""

    stage: Stage
    why: str
    """Why it runs; empty if what it made before still holds."""
    kept: Kept | None = None
    """What it made before, if that still holds."""


class Planned(NamedTuple):
    """One line of a plan."""

    stage: Stage
    why: str
    ask_steps: Callable[[], Sequence[Step]]

    @property
    def steps(self) -> Sequence[Step]:
        """Its commands and files, found when they are asked for: most pages show few of them."""
        return self.ask_steps()


def build(
    request: BuildRequest, *, again: str = "", fresh: bool = False, wait: bool | None = None
) -> Result:
    """Take a recipe through the pipeline up to the last wanted stage; return what that one made.

    As `results`, which returns what all of them made.
    """
    made = results(request, again=again, fresh=fresh, wait=wait)
    return made[wanted(request)[-1].makes]


def results(
    request: BuildRequest, *, again: str = "", fresh: bool = False, wait: bool | None = None
) -> Results:
    """Take a recipe through the pipeline up to the last wanted stage; return what each made.

    Stages whose stamp holds are skipped; `again` names one that runs all the same, `fresh` drops
    everything but the caches first. `wait` says whether to wait for another command that works on
    the recipe; None stands for a command that cannot be asked to. Raises a TfwrightError that names
    its stage.
    """
    # The lock comes first: --fresh would remove the
    # tree under another build's compiler.
    with occupied(request, wait=wait):
        # Asked before anything is fetched: publish would find out only hours later.
        rivals.insist_on_own_name(request)
        if fresh:
            _clear(request)
        made: Results = {}
        for stage in wanted(request):
            decision = decide(stage, request, made, again=stage.name == again)
            if kept := decision.kept:
                made[stage.makes] = kept.result
                stamps.renew(request, stage, kept.stamp, kept.seen)
                request.listener.kept(stage.name)
            else:
                made[stage.makes] = _run(decision, request, made)
        return made


@contextmanager
def occupied(job: Job, *, wait: bool | None = None) -> Iterator[None]:
    """Keep every other command away from the recipe's directory while the block runs."""
    # Not every command has --wait, and a remedy must be one that can be typed.
    remedy = file_lock.REMEDY if wait is None else "Wait until that has ended, or add --wait."
    with file_lock.held(job.places.lock, f"on recipe {job.name}", wait=bool(wait), remedy=remedy):
        yield


def plan(request: BuildRequest, *, again: str = "", blocked: bool = False) -> Iterator[Planned]:
    """Say what `build` would do, stage by stage, without doing any of it.

    A stage that keeps nothing only looks, and is run: what the rest depends on is then known. What
    lies behind any other stage that runs cannot be known yet: it is said to follow that one, and is
    kept after all if the result turns out to be the same. On a host that is `blocked`, the check
    would refuse the recipe, so it is not run, and everything follows it.
    """
    results: Results = {}
    # Only for showing commands: what earlier builds made may no longer hold.
    earlier = stamps.latest(request, PIPELINE)
    for stage in wanted(request):
        missing = [kind for kind in stage.needs if kind not in results]
        if missing:
            maker = next(other for other in PIPELINE if other.makes is missing[0])
            known = {**earlier, **results}
            reasons = (f"follows {maker.name}", stage.foresees(request, known))
            yield Planned(
                stage, "; ".join(filter(None, reasons)), partial(_steps, stage, request, earlier)
            )
            continue
        decision = decide(stage, request, results, again=stage.name == again)
        if decision.kept:
            results[stage.makes] = decision.kept.result
        elif not (stage.cached or blocked):
            with containers.around(request, stage.name):
                results[stage.makes] = stage.run(request, results)
        known = {**earlier, **results}
        yield Planned(stage, decision.why, partial(_steps, stage, request, known))


def _steps(stage: Stage, request: BuildRequest, results: Results) -> Sequence[Step]:
    """Return what a stage does, after the start of the container that it does it in."""
    opening = containers.steps(request, stage.name)
    return (*opening, *stage.steps(request, results))


def wanted(job: Job) -> list[Stage]:
    """Return the stages up to the job's last one."""
    return list(PIPELINE[: _names().index(job.until) + 1])


def decide(stage: Stage, request: BuildRequest, results: Results, *, again: bool) -> Decision:
    """Decide whether `stage` has to run; nothing is changed."""
    if again or not stage.cached:
        return Decision(stage, "asked for again" if again else "runs every time")
    stamp = stamps.read(request, stage)
    if stamp is None:
        return Decision(stage, "not done yet")
    # A stamp keeps its result as plain JSON, whose fields another version may not know.
    try:
        result = stage.makes.model_validate(stamp.result)
    except ValueError:
        return Decision(stage, "its stamp is from another version of tfwright")
    # The cheap questions first: digests at hand, then the
    # state of files, then walks of the tree.
    if why := stamps.changed(stamp, stamps.parts(stage, request, results)):
        return Decision(stage, why)
    seen = stamps.states(result)
    why = stamps.damage(stamp, result, seen) or stage.damage(request, result)
    if why:
        return Decision(stage, why)
    return Decision(stage, "", Kept(result, stamp, seen))


def _run(decision: Decision, request: BuildRequest, results: Results) -> Result:
    """Run one stage and stamp it."""
    stage = decision.stage
    # Before the run: what changes meanwhile must make
    # the next build run the stage again.
    depends = stamps.parts(stage, request, results)
    request.listener.started(stage.name, decision.why)
    begun = time.monotonic()
    before = _processor()
    try:
        with disk.explained():
            stamps.forget(request, stage)
            _empty(request.places.home)
            with _closed_off(request, stage), containers.around(request, stage.name):
                result = stage.run(request, results)
            seconds = time.monotonic() - begun
            # The stamp is written last, so it never speaks
            # of a stage that was interrupted.
            if stage.cached:
                took = Took(seconds, _processor() - before)
                stamps.write(request, stage, depends, result, took)
    except TfwrightError as fault:
        fault.stage = stage.name
        fault.recipe = request.argument
        raise
    request.listener.finished(stage.name, seconds)
    return result


def _empty(home: Path) -> None:
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
def _closed_off(request: BuildRequest, stage: Stage) -> Iterator[None]:
    """Take the network away from the programs of an offline build, which proves that it needs none.

    The check makes nothing, and a container has no network by itself.
    """
    from tfwright.tools.process import isolation

    # An enclosure costs a few namespaces, so it is opened only where a program may run.
    if not request.offline or not stage.cached or containers.encloses(request, stage.name):
        yield
    elif obstacle := isolation.obstacle():
        request.listener.note(f"Programs of this stage have a network: {obstacle}")
        yield
    else:
        with isolation.closed():
            yield


def _processor() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    # The fifth number is elapsed time, not that of a processor.
    return sum(os.times()[:4])


def clean(job: Job, *, caches: bool = False) -> None:
    """Remove what was built of a recipe; the wheelhouse stays.

    The mirrors, the vault and the build cache belong to all recipes and go only with `caches`.
    Raises HostError, and removes nothing, if a command works with what would be removed.
    """
    places = job.places
    with ExitStack() as held:
        held.enter_context(occupied(job))
        if caches:
            # Builds of every other recipe read the mirrors and the vault, too.
            for lock in places.build_out.glob("*/lock"):
                if lock != places.lock:
                    held.enter_context(file_lock.held(lock, "removing the caches"))
        _clear(job)
        shared = (places.git, places.vault, job.host_file.cache_directory)
        for path in shared if caches else ():
            files.remove(path)


def _clear(job: Job) -> None:
    """Remove what was built of a recipe whose lock is held."""
    places = job.places
    for path in (
        # First: a clean that is interrupted must leave no stamp of files that are gone.
        places.stamps,
        places.tree,
        repository_of(places.tree),
        places.patched,
        repository_of(places.patched),
        places.readings,
        places.bazel,
        places.dist,
        places.logs,
    ):
        files.remove(path)


def insist(until: str, again: str = "") -> None:
    """Raise RecipeError unless both are stages, and `again` is not after `until`."""
    last = _names().index(stage_named(until).name)
    if again and _names().index(stage_named(again).name) > last:
        raise RecipeError(
            f"Stage {again!r} is not run again by a build that ends with {until!r}",
            remedy=f"Add --until {again}, or a later stage.",
        )


def jobs_asked(text: str) -> int | None:
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


def _names() -> list[str]:
    return [stage.name for stage in PIPELINE]


def stage_named(name: str) -> Stage:
    """Return a stage by its name; raise RecipeError with the nearest one if there is none."""
    for stage in PIPELINE:
        if stage.name == name:
            return stage
    raise RecipeError(
        f"Unknown stage {name!r}{spelling.guess(name, _names())}",
        remedy=f"The stages are: {', '.join(_names())}.",
    )


_OF_A_BUILD = ("--build_event_json_file=", "--profile=", "--disk_cache=", "--remote_")
"""Options of Bazel that say where the record of a build goes, or which cache tfwright serves."""


def enter(request: BuildRequest, name: str) -> NoReturn:
    """Become a shell in a stage's directory, with the environment of the stage's first command."""
    stage = stage_named(name)
    steps = stage.steps(request, stamps.latest(request, PIPELINE))
    command = next((step for step in steps if isinstance(step, Command)), None)
    if command is None:
        raise RecipeError(
            f"Stage {name!r} runs no program, so it has no environment to enter",
            remedy="Choose configure, compile, nccl or package.",
        )
    if not command.cwd.is_dir():
        raise HostError(
            f"{command.cwd} is not there yet",
            remedy=f"Run 'invoke build --recipe {request.argument} --until source' first.",
        )
    terminal = {
        "TERM": os.environ.get("TERM", "dumb"),
        "PS1": f"({request.name} {name}) \\w $ ",
        **bazel_function(command),
    }
    # The user's own start-up files would set PATH, and so
    # another environment than the stage's.
    shell = ("/bin/bash", "--norc", "--noprofile")
    entered = Command(shell, command.cwd, {**command.env, **terminal})
    if containers.encloses(request, name):
        sys.exit(containers.enter(request, name, entered))
    become(entered)


def bazel_function(command: Command) -> dict[str, str]:
    """Return a variable that makes ``bazel``, typed in bash, the Bazel of a command.

    It has the same options. With others Bazel starts another server, with another output base, or
    compiles everything again.
    """
    program, *arguments = command.argv
    if not Path(program).name.startswith("bazel"):
        return {}
    # "bazel --startup build --option -- //target"
    startup = list(itertools.takewhile(_is_option, arguments))
    given = itertools.takewhile(_is_option, arguments[len(startup) + 1 :])
    options = [word for word in given if not word.startswith(_OF_A_BUILD)]
    text = f"""() {{
    case $1 in
        build | test | run | aquery | cquery) set -- "$1" {shlex.join(options)} "${{@:2}}" ;;
    esac
    {shlex.join([program, *startup])} "$@"
}}"""
    # This is how bash hands functions on to other shells.
    return {"BASH_FUNC_bazel%%": text}


def _is_option(word: str) -> bool:
    return word.startswith("--") and word != "--"
