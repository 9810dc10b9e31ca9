"""Commands about the build of one recipe: build, plan, shell, clean, reproduce."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from invoke import Context

from tfwright.options import JSON, OFFLINE, RECIPE, UNTIL, job_of, show_error, task
from tfwright.terminal.answer import Answer, Shown


@task(
    default=True,
    iterable=["recipe"],
    positional=(),  # else invoke would demand at least one recipe
    # Neither --fresh nor --again: a resumed build must not begin from nothing.
    resumes=("recipe", "until", "offline", "jobs", "wait", "verified_by", "cache", "on"),
    help=JSON
    | UNTIL
    | OFFLINE
    | {
        "recipe": "name of a recipe, or path of one that ends in .toml; repeatable",
        "again": "run this stage even if its result is up to date",
        "fresh": "forget what was built of this recipe; caches stay",
        "jobs": "number of actions that Bazel runs at once",
        "wait": "wait until another build of the same recipe ends",
        "verified-by": "after a successful build, write [verified] into the recipe, with this name",
        "cache": "reuse results of earlier builds from the build cache",
        "on": "here, workers or slurm; default: here, or what the host file has for several",
    },
)
def build(
    _: Context,
    recipe: Sequence[str] | None = None,
    until: str = "publish",
    again: str = "",
    fresh: bool = False,
    offline: bool = False,
    # Text, so that a wrong number gets a message of ours and not a traceback of invoke's.
    jobs: str = "",
    wait: bool = False,
    verified_by: str = "",
    cache: bool = True,
    on: str = "",
    json: bool = False,
) -> Shown:
    """Build a recipe into a wheel; stages whose result is up to date are skipped.

    Several recipes are handed to the workers or the Slurm of the host file, if it names any.
    """
    options: dict[str, Any] = {
        "until": until,
        "again": again,
        "fresh": fresh,
        "offline": offline,
        "jobs": jobs,
        "wait": wait,
        "verified_by": verified_by,
        "cache": cache,
    }
    # Only the demo builds on every host, so it is what a first "invoke build" runs.
    names = [*(recipe or ("demo",))]
    if len(names) > 1 or on:
        return _build_several(names, on, options, as_json=json)
    return _build_one(names[0], options)


def _build_one(recipe: str, options: Mapping[str, Any]) -> Shown:
    from tfwright.build import page
    from tfwright.documents import recipe as recipes
    from tfwright.pipeline import engine

    until, again, by = options["until"], options["again"], options["verified_by"]
    # A mistyped stage is refused before the recipe is read.
    engine.check_stages(until, again)
    asked = {
        name: options[name] for name in ("until", "again", "fresh", "offline", "wait", "cache")
    }
    # What is verified was built from all that the recipe pins.
    job = job_of(recipe, jobs=engine.parse_jobs(options["jobs"]), all_inputs=bool(by), **asked)
    built: dict[str, str] = {}
    if by:
        from tfwright.build import verified

        verified.check_name(by)
        # Before the build: what is edited while it runs is not what it builds.
        lock = recipes.find_editable(recipe).with_suffix(".lock")
        # And as it is written: the job has this host's Bazel in place of the pinned one.
        built = verified.part_checksums(recipes.read(recipe), lock)
    page.show_start(job)
    result = engine.build(job).last
    if by:
        # After the build: a recipe must not claim what was not seen.
        where = verified.describe_host()
        if job.pinned_bazel:
            where += f"; Bazel {job.recipe.bazel.version} in place of {job.pinned_bazel}"
        verified.write(recipes.find(recipe), built, until=until, where=where, by=by)
    return Answer(result, partial(page.show_result, job), partial(page.built_data, job))


def _build_several(names: list[str], on: str, options: dict[str, Any], *, as_json: bool) -> Shown:
    """Build recipes here or on other machines, and show which machine built what."""
    from tfwright.documents import host_file
    from tfwright.documents import recipe as recipes
    from tfwright.errors import TfwrightError
    from tfwright.pipeline import engine
    from tfwright.terminal.text import tell
    from tfwright.workers import dispatch as builds
    from tfwright.workers import page

    # Everything that was typed is checked before the first recipe is built.
    engine.check_stages(options["until"], options["again"])
    for name in names:
        recipes.find(name)
    settings = host_file.read()
    place = builds.place_of(settings, on, names)
    on_assignment = page.show_assignment

    def build_here(name: str) -> None:
        try:
            answer = _build_one(name, options)
            # Standard output must hold nothing but the JSON of them all.
            if answer and not as_json:
                answer.show()
        # Shown at once: the other recipes are built all the same.
        except TfwrightError as fault:
            show_error(fault, name, build.resume({"recipe": [name], **options}))
            raise

    if place == "here":
        done = builds.build_locally(settings, names, build_here, on_assignment)
    else:
        done = builds.build_remotely(settings, place, names, options, on_assignment, tell)
    # A build on this host has said why it failed.
    show = partial(page.show_assignments, explain=place != "here")
    return Answer(done, show, status=builds.exit_status(done))


@task(
    help=RECIPE
    | JSON
    | UNTIL
    | {
        "again": "plan as if this stage had to run again",
        "offline": "plan a build without a network",
        "bazelrc": "print the .tf_configure.bazelrc that the recipe's answers give, and end",
    }
)
def plan(
    _: Context,
    recipe: str = "demo",
    until: str = "publish",
    again: str = "",
    offline: bool = False,
    bazelrc: bool = False,
) -> Shown:
    """Show which stages would run and why, with their commands, environment and files.

    Nothing is run and nothing is changed. A recipe that this host cannot build is planned as well.
    """
    from tfwright.build import page
    from tfwright.build import plan as plans
    from tfwright.documents import recipe as recipes
    from tfwright.pipeline import engine
    from tfwright.pipeline.stages import configure

    engine.check_stages(until, again)
    job = job_of(recipe, until=until, again=again, offline=offline)
    # Text as it is, so that it can be sent into a file and compared.
    if bazelrc:
        return Answer(configure.render_bazelrc(job.recipe, job.host_file), sys.stdout.write)
    planned, findings = plans.plan(job)
    planned = [*planned]
    warnings = tuple(plans.warnings(job, recipes.find(recipe)))
    show = partial(page.show_plan, findings=findings, warnings=warnings, recipe=job.argument)
    return Answer(planned, show, page.plan_data)


@task(help=RECIPE | {"stage": "whose directory and environment"})
def shell(_: Context, recipe: str = "demo", stage: str = "compile") -> None:
    """Open a shell in a stage's directory, with the environment of its first command."""
    from tfwright.pipeline import engine

    engine.open_shell(job_of(recipe), stage)


@task(
    help=RECIPE
    | {"caches": "remove the mirrors, the vault and the build cache of all recipes, too"}
)
def clean(_: Context, recipe: str = "demo", caches: bool = False) -> None:
    """Remove the build of a recipe, except its wheels."""
    from tfwright.documents import host_file
    from tfwright.documents import recipe as recipes
    from tfwright.pipeline import engine
    from tfwright.pipeline.job import Job
    from tfwright.printable import shell_word
    from tfwright.terminal import console
    from tfwright.terminal.text import tell

    name = Path(recipe).stem if recipe.endswith(".toml") else recipe
    settings, argument = host_file.read(), shell_word(recipe)
    job = Job(name=name, argument=argument, host_file=settings, listener=console.Terminal())
    # What was built of a recipe stays when that is renamed, removed or broken.
    if Path(name).name != name or not job.places.lock.is_file():
        recipes.find(recipe)
    engine.clean(job, caches=caches)
    everything = ", and the caches of all recipes" if caches else ""
    tell(f"  removed what was built of {name}, except its wheels{everything}")


@task(
    help=JSON
    | RECIPE
    | {
        "wheel": (
            "path of a wheel of ours, whose build record names the recipe; without it the one in "
            "the wheelhouse"
        ),
        "cached": "use the build cache: faster, but proves less",
        "control": "on a difference, build again at fixed addresses to tell why",
    }
)
def reproduce(
    _: Context, wheel: str = "", recipe: str = "", cached: bool = False, control: bool = True
) -> Shown:
    """Build a wheel again from scratch in another directory, and compare the two.

    The exit status is 0 if they are the same bytes; otherwise it looks for the cause.
    """
    from tfwright.build import page
    from tfwright.build import reproduce as reproduction

    # A wheel of ours names its recipe.
    name = reproduction.recipe_of_wheel(Path(wheel)) if wheel and not recipe else recipe
    job = job_of(name or "demo")
    original = Path(wheel) if wheel else reproduction.published_wheel(job)
    # Refused before hours of building: another recipe cannot give the same wheel.
    reproduction.check_unchanged(job, original)
    found = reproduction.reproduce(job, original, cached=cached, control=control)
    return Answer(
        found,
        page.show_reproduction,
        lambda found: {"reproduced": found.comparison.same, **vars(found)},
        status=0 if found.comparison.same else 1,
    )
