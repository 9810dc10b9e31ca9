"""The command lock."""

from functools import partial

from invoke import Context

from tfwright.options import JSON, RECIPE, job_of, task
from tfwright.terminal.answer import Answer, Shown


@task(help=RECIPE | JSON)
def lock(_: Context, recipe: str = "demo") -> Shown:
    """Write the lock file next to a recipe: every input by its checksum.

    From then on a build refuses any other input.
    """
    from tfwright.documents import recipe as recipes
    from tfwright.lock import inputs
    from tfwright.vault import page

    # Next to the recipe, and committed with it.
    path = recipes.find(recipe, to_write=True).with_suffix(".lock")
    return Answer(
        inputs.write(job_of(recipe), path),
        partial(page.show_lock, path),
        lambda lock: {"path": path, **lock.model_dump()},
    )
