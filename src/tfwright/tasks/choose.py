"""Commands that choose a recipe: recipes, match, doctor."""

import sys
from typing import TYPE_CHECKING

from invoke import Context

from tfwright.tasks.common import JSON, MACHINE, RECIPE, explained, job_of, task

if TYPE_CHECKING:
    from tfwright.host.match import Wish


@task(help=JSON)
def recipes(_: Context, json: bool = False) -> None:
    """List the recipes: what each one pins, how far it was verified, and whether it builds here."""
    with explained():
        from tfwright.commands import recipes as listing
        from tfwright.documents import host_file
        from tfwright.terminal import recipes as page

        # A row compares the recipe with this host, and starts no build.
        page.show_recipes(listing.rows(host_file.read()), as_json=json)


@task(
    help=JSON
    | MACHINE
    | {
        "glibc": "the oldest version that the wheel must load on",
        "release": "of TensorFlow, as 2.6 or v1.12.0-rc0",
        "cpu": "the most that an x86-64 CPU has, for --index: sse4.2, avx, avx2",
        "index": "address of a tfwright index: name its wheels that fit, without a download",
    }
)
def match(
    _: Context,
    gpu: str = "",
    python: str = "",
    glibc: str = "",
    cuda: str = "",
    os: str = "",
    release: str = "",
    cpu: str = "",
    index: str = "",
    json: bool = False,
) -> None:
    """Find the recipes for a machine: those that fit, the nearest others, what a new one would pin.

    Without options the machine is this one.
    """
    with explained():
        from tfwright.documents import recipe as recipes
        from tfwright.host import match, probes
        from tfwright.terminal import doctor as page

        # What cannot be changed about this host completes
        # the wish: its system and its GPU.
        host = probes.here()
        wanted = match.wish(
            host, gpu=gpu, python=python, glibc=glibc, cuda=cuda, system=os, release=release
        )
        if index:
            _match_wheels(index, match.of_wheels(wanted, host, cpu), as_json=json)
            return
        ranked = match.rank([recipes.read(name) for name in recipes.names()], wanted, host)
        page.show_matches(wanted, ranked, match.needs(wanted), match.NEAREST, as_json=json)


def _match_wheels(index: str, wanted: "Wish", *, as_json: bool) -> None:
    from tfwright.nightly.index import matching
    from tfwright.terminal import index as page

    # An index states what its wheels need, so the answer costs no download of wheels.
    page.show_matches(matching.asked(index, wanted), index, as_json=as_json)


@task(help=RECIPE | JSON | {"all": "list what was looked for and not found, too"})
def doctor(
    _: Context,
    recipe: str = "demo",
    all: bool = False,  # noqa: A002 the flag's name
    json: bool = False,
) -> None:
    """Compare this host with a recipe: what is missing, the worst first, each with its remedy.

    The exit status is 0 only if the build may start.
    """
    with explained(recipe):
        from tfwright import errors
        from tfwright.commands import doctor
        from tfwright.terminal import doctor as page

        facts, findings = doctor.look(job_of(recipe))
        page.show_examination(recipe, facts, findings, as_json=json, everything=all)
        # The status of the build that would be refused, so that a script can ask first.
        if any(finding.blocks for finding in findings):
            sys.exit(errors.HostError.exit_status)


@task(
    help=MACHINE
    | {
        "release": "as 2.6, 2.4.4, 1.12.0-rc0 or 2.4.0@COMMIT; default: the newest that fits",
        "bazel": "version, where neither the tree nor tfwright's tables name one",
        "like": "copy this recipe instead, without what was verified",
        "name": "with --like: the name of the copy",
        "folder": "where to write it, instead of recipes/",
    }
)
def new(
    _: Context,
    release: str = "",
    like: str = "",
    name: str = "",
    gpu: str = "",
    python: str = "",
    cuda: str = "",
    os: str = "",
    bazel: str = "",
    folder: str = "",
) -> None:
    """Write a new recipe: what is known is filled in with its source, the rest is asked for."""
    with explained():
        from pathlib import Path

        from tfwright.commands import new as making
        from tfwright.documents import host_file
        from tfwright.documents import recipe as recipes
        from tfwright.errors import RecipeError
        from tfwright.terminal import port as page

        if like:
            if not name:
                raise RecipeError("The copy needs a name", remedy="Add --name NAME.")
            # A copy keeps every pin; what was verified holds only for the original.
            page.show_new(making.copy(recipes.find(like), name, folder))
            return
        wish = _wish(gpu, python, cuda, os)
        wanted = making.wanted_of(release or _newest_release(wish))
        place = Path(folder) if folder else recipes.RECIPES
        tools = making.Tools(bazel=bazel)
        page.show_new(making.new(wish, wanted, host_file.read(), place, page.ask, tools))


def _wish(gpu: str, python: str, cuda: str, system: str) -> "Wish":
    """Return what a new recipe is for; what was not typed is as on this host."""
    from tfwright.host import match, probes

    wish = match.wish(probes.here(), gpu=gpu, python=python, cuda=cuda, system=system)
    if gpu or cuda:
        return wish
    # A GPU in this host alone is not a wish for CUDA.
    return match.Wish(system=wish.system, machine=wish.machine, python=python)


def _newest_release(wish: "Wish") -> str:
    """Return the newest TensorFlow that fits a wish; raise RecipeError if none does."""
    from tfwright.errors import RecipeError
    from tfwright.host import match

    for need in match.needs(wish):
        if need.name == "TensorFlow":
            return need.value
    raise RecipeError(
        "No TensorFlow release was made for this combination",
        remedy="Ask for less: 'invoke match' shows what exists.",
    )


@task(help=RECIPE | {"to": "tag or branch of the other release, as v1.12.0, or v1.12.0@COMMIT"})
def port(_: Context, to: str, recipe: str = "demo") -> None:
    """Carry a recipe to another release: a new file, and a report of what no longer fits."""
    with explained(recipe):
        from tfwright.commands import port as porting
        from tfwright.documents import recipe as recipes
        from tfwright.terminal import port as page

        # The original stays as it is: the new release gets a file of its own.
        page.show_port(porting.port(job_of(recipe), recipes.find(recipe), to))


@task(
    iterable=["add", "verify"],
    help=RECIPE
    | {
        "add": "a further package of the build, as numpy or numpy==1.14.5",
        "verify": "a package that the wheel needs, as 'tensorboard>=1.12,<1.13'",
    },
)
def pin(_: Context, add: list[str], verify: list[str], recipe: str = "demo") -> None:
    """Pin all packages that a recipe's packages need, and every checksum that it leaves open."""
    with explained(recipe):
        from tfwright.commands import pin as pinning
        from tfwright.commands.pin import checksums, requirements
        from tfwright.documents import host_file
        from tfwright.documents import recipe as recipes
        from tfwright.terminal import console
        from tfwright.terminal import port as page

        # Before the recipe is read as a whole: without these checksums it does not load.
        path = recipes.find(recipe)
        checksums.pin(path, host_file.read(), console.Terminal())
        job = job_of(recipe, complete=requirements.without_open)
        page.show_pinned(pinning.pin(job, path, add, verify))


@task(help=RECIPE)
def record(_: Context, recipe: str = "demo") -> None:
    """Answer ./configure yourself, once: questions and answers are written into the recipe."""
    with explained(recipe):
        from tfwright.commands import record as recording
        from tfwright.documents import recipe as recipes
        from tfwright.terminal import record as page

        job = job_of(recipe)
        recorded = recording.record(job, recipes.find(recipe), page.ask)
        page.show(recorded, job.argument)
