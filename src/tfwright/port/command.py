"""The command port."""

from invoke import Context

from tfwright.options import JSON, RECIPE, job_of, task
from tfwright.terminal.answer import Answer, Shown


@task(
    help=RECIPE | JSON | {"to": "tag or branch of the other release, as v1.12.0, or v1.12.0@COMMIT"}
)
def port(_: Context, to: str, recipe: str = "demo") -> Shown:
    """Port a recipe to another release: write a new one, and report what no longer fits."""
    from tfwright.documents import recipe as recipes
    from tfwright.port import page, porting

    # The original stays as it is: the new release gets a file of its own.
    return Answer(porting.port(job_of(recipe), recipes.editable(recipe), to), page.show_port)
