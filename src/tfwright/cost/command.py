"""The command cost."""

from invoke import Context

from tfwright.options import JSON, RECIPE, explained, job_of, task


@task(
    help=RECIPE
    | JSON
    | {
        "page": "write a page with a timeline of Bazel's actions into this file",
        "against": "compare with a build: 'previous', a nightly build, or the path of a profile",
    }
)
def cost(
    _: Context, recipe: str = "demo", page: str = "", against: str = "", json: bool = False
) -> None:
    """Show what a recipe's build took: time, processor time, memory, slowest actions, disk."""
    with explained(recipe):
        if page or against:
            from tfwright.cost import account as pages
            from tfwright.cost import page as shown

            shown.show_page(pages.write(job_of(recipe), page, against))
            return
        from tfwright.cost import page as shown
        from tfwright.pipeline import cost as costs
        from tfwright.pipeline.stages import PIPELINE

        shown.show_cost(costs.of(job_of(recipe), PIPELINE), as_json=json)
