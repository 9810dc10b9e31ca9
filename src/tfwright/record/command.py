"""The command record."""

from invoke import Context

from tfwright.options import RECIPE, explained, job_of, task


@task(help=RECIPE)
def record(_: Context, recipe: str = "demo") -> None:
    """Answer ./configure yourself, once: questions and answers are written into the recipe."""
    with explained(recipe):
        from tfwright.documents import recipe as recipes
        from tfwright.record import page
        from tfwright.record import session as recording

        job = job_of(recipe)
        recorded = recording.record(job, recipes.find(recipe), page.ask)
        page.show(recorded, job.argument)
