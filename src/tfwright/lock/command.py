"""The command lock."""

from invoke import Context

from tfwright.options import RECIPE, explained, job_of, task


@task(help=RECIPE)
def lock(_: Context, recipe: str = "demo") -> None:
    """Write the lock file next to a recipe: every input by its checksum.

    From then on a build refuses any other input.
    """
    with explained(recipe):
        from tfwright.documents import recipe as recipes
        from tfwright.lock import writing as locks
        from tfwright.vault import page

        # Next to the recipe, and committed with it.
        path = recipes.find(recipe).with_suffix(".lock")
        page.show_lock(path, locks.write(job_of(recipe), path))
