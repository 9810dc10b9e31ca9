"""The command doctor."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from invoke import Context

from tfwright.options import JSON, RECIPE, job_of, task
from tfwright.terminal.answer import Answer, Shown

if TYPE_CHECKING:
    from tfwright.doctor.inventory import Fact, Finding
    from tfwright.pipeline.job import RecipeJob


@task(help=RECIPE | JSON | {"all": "also list optional items that were not found"})
def doctor(
    _: Context,
    recipe: str = "demo",
    all: bool = False,  # noqa: A002 the flag's name
) -> Shown:
    """List what this host lacks for a recipe, the worst first, each with its remedy.

    The exit status is 0 only if the build can start.
    """
    from tfwright import errors
    from tfwright.doctor import page, requirements

    job = job_of(recipe)
    facts, findings = inspect_host(job)
    cost = requirements.forecast(job.recipe)
    blocks = any(finding.blocks for finding in findings)
    return Answer(
        findings,
        partial(page.show_examination, recipe, facts, everything=all, cost=cost),
        partial(page.examination_data, recipe, facts),
        # The status of the build that would be refused, so that a script can ask first.
        status=errors.HostError.exit_status if blocks else 0,
    )


def inspect_host(job: "RecipeJob") -> tuple[Sequence["Fact"], Sequence["Finding"]]:
    """Return what there is, and what is not as the recipe wants it, the worst first.

    Of a recipe that names a container image, compiler and Python are those of the image. Without
    the image they cannot be known, and only the image is reported.
    """
    from tfwright.doctor import images, inventory, network, requirements
    from tfwright.doctor.inventory import worst_first
    from tfwright.host import probes
    from tfwright.pipeline import containers
    from tfwright.tools.container import image

    found = [*images.findings(job.recipe, job.host_file)]
    if any(finding.blocks for finding in found):
        return (), found
    pinned = job.recipe.host.image
    if pinned and not image.path_of(job.places.vault, pinned.digest).is_dir():
        # A look downloads nothing: the build will pull the image, and examine it then.
        return (), found
    with containers.stage_container(job, "check"):
        host = probes.this_host()
        found += requirements.examine(job.recipe, job.host_file, host)
        facts = inventory.HostInventory(job.recipe, job.host_file, host).facts()
    if not job.offline:
        found += network.findings(job.recipe, job.host_file, job.places.stores)
    return facts, worst_first(found)
