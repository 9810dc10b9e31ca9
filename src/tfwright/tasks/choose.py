"""Commands that choose a recipe: recipes, match, doctor."""

import sys

from invoke import Context, task

from tfwright.tasks.common import JSON, RECIPE, explained, job_of


@task(help=JSON)
def recipes(_: Context, json: bool = False) -> None:
    """List the recipes: what each one pins, how far it was verified, and whether it builds here."""
    with explained():
        from tfwright.commands import recipes as listing
        from tfwright.documents import host_file
        from tfwright.terminal import recipes as page

        page.show_recipes(listing.rows(host_file.read()), as_json=json)


@task(
    help=JSON
    | {
        "gpu": "name as 'RTX 3090', or compute capability as sm_86 or 8.6",
        "python": "target Python, as 3.6",
        "glibc": "the oldest version that the wheel must load on",
        "cuda": "version, as 10.1",
        "os": "Linux or Darwin",
    }
)
def match(
    _: Context,
    gpu: str = "",
    python: str = "",
    glibc: str = "",
    cuda: str = "",
    os: str = "",
    json: bool = False,
) -> None:
    """Find the recipes for a machine: those that fit, the nearest others, what a new one would pin.

    Without options the machine is this one.
    """
    with explained():
        from tfwright.documents import recipe as recipes
        from tfwright.host import match, probes
        from tfwright.terminal import doctor as page

        host = probes.here()
        wanted = match.wish(host, gpu=gpu, python=python, glibc=glibc, cuda=cuda, system=os)
        ranked = match.rank([recipes.read(name) for name in recipes.names()], wanted, host)
        page.show_matches(wanted, ranked, match.needs(wanted), match.NEAREST, as_json=json)


@task(help=RECIPE | JSON | {"all": "list what was looked for and not found, too"})
def doctor(_: Context, recipe: str = "demo", all: bool = False, json: bool = False) -> None:  # noqa: A002 the flag's name
    """Compare this host with a recipe: what is missing, the worst first, each with its remedy.

    The exit status is 0 only if the build may start.
    """
    with explained():
        from tfwright import errors
        from tfwright.host import examination, inventory, probes
        from tfwright.terminal import doctor as page

        job, host = job_of(recipe), probes.here()
        findings = examination.examine(job.recipe, job.host_file, host)
        facts = inventory.take(job.recipe, job.host_file, host)
        page.show_examination(recipe, facts, findings, as_json=json, everything=all)
        if any(finding.blocks for finding in findings):
            sys.exit(errors.HostError.exit_status)
