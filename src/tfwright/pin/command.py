"""The command pin."""

from invoke import Context

from tfwright.options import RECIPE, explained, job_of, task


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
        from tfwright.documents import host_file
        from tfwright.documents import recipe as recipes
        from tfwright.pin import checksums, requirements
        from tfwright.pin import packages as pinning
        from tfwright.port import page
        from tfwright.terminal import console

        # Before the recipe is read as a whole: without these checksums it does not load.
        path = recipes.find(recipe)
        checksums.pin(path, host_file.read(), console.Terminal())
        job = job_of(recipe, complete=requirements.without_open)
        page.show_pinned(pinning.pin(job, path, add, verify))
