"""The command record."""

from functools import partial

from invoke import Context

from tfwright.options import JSON, RECIPE, job_of, task
from tfwright.terminal.answer import Answer, Shown


@task(help=RECIPE | JSON)
def record(_: Context, recipe: str = "demo") -> Shown:
    """Answer ./configure yourself, once: questions and answers are written into the recipe."""
    from tfwright.documents import recipe as recipes
    from tfwright.record import page
    from tfwright.record import session as recording

    job = job_of(recipe)
    recorded = recording.record(job, recipes.find(recipe, to_write=True), page.ask)
    return Answer(recorded, partial(page.show, recipe=job.argument))
