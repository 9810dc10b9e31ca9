"""The command bisect."""

from invoke import Context

from tfwright.options import JSON, explained, resuming, task


@task(
    help=JSON
    | {
        "recipe": "a recipe of nightly.toml that fails",
        "good": "identifier of a good build; default: the last one before the failure",
        "bad": "identifier of a failed build; default: the newest",
    }
)
def bisect(_: Context, recipe: str, good: str = "", bad: str = "", json: bool = False) -> None:
    """Find the change that broke a nightly recipe: a table, a patch, a commit, or the lock file."""
    again = resuming("bisect", recipe=recipe, good=good, bad=bad)
    with explained(resume=again):
        from tfwright.bisect import bisection as bisect
        from tfwright.bisect import page
        from tfwright.terminal import console

        wanted = bisect.prepare(recipe, good, bad)
        # Before the first trial: the user sees how many trials lie ahead, and may stop.
        page.show_start(wanted)
        outcome = bisect.bisect(wanted, page.show_trial, console.Terminal())
        page.show_outcome(wanted, outcome, as_json=json)
