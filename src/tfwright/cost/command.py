"""The command cost."""

from invoke import Context

from tfwright.options import JSON, RECIPE, job_of, task
from tfwright.terminal.answer import Answer, Shown


@task(
    help=RECIPE
    | JSON
    | {
        "page": "write a page with a timeline of Bazel's actions into this file",
        "against": "compare with a build: 'previous', a nightly build, or the path of a profile",
    }
)
def cost(_: Context, recipe: str = "demo", page: str = "", against: str = "") -> Shown:
    """Show what a recipe's build took: time, processor time, memory, slowest actions, disk."""
    from tfwright.cost import page as shown

    if page or against:
        from tfwright.cost import account as pages

        return Answer(pages.write(job_of(recipe), page, against), shown.show_page)
    from tfwright.pipeline import cost as costs
    from tfwright.pipeline.stages import PIPELINE

    return Answer(
        costs.of(job_of(recipe), PIPELINE),
        shown.show_cost,
        lambda spent: {**vars(spent), "slowest": spent.slowest},
    )
