"""The command bisect."""

from functools import partial

from invoke import Context

from tfwright.options import JSON, task
from tfwright.terminal.answer import Answer, Shown


@task(
    resumes=("recipe", "good", "bad"),
    help=JSON
    | {
        "recipe": "a recipe of nightly.toml that fails",
        "good": "identifier of a good build; default: the last one before the failure",
        "bad": "identifier of a failed build; default: the newest",
    },
)
def bisect(_: Context, recipe: str, good: str = "", bad: str = "") -> Shown:
    """Find the change that broke a nightly recipe: a table, a patch, a commit, or the lock file."""
    from tfwright.bisect import bisection as bisect
    from tfwright.bisect import page
    from tfwright.terminal.console import Terminal

    wanted = bisect.prepare(recipe, good, bad)
    # Before the first trial: the user sees how many trials lie ahead, and may stop.
    page.show_start(wanted)
    outcome = bisect.bisect(wanted, page.show_trial, Terminal())
    show, data = partial(page.show_outcome, wanted), partial(page.outcome_data, wanted)
    return Answer(outcome, show, data)
