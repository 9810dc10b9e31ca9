"""The command doctor."""

from functools import partial

from invoke import Context

from tfwright.options import JSON, RECIPE, job_of, task
from tfwright.terminal.answer import Answer, Shown


@task(help=RECIPE | JSON | {"all": "list what was looked for and not found, too"})
def doctor(
    _: Context,
    recipe: str = "demo",
    all: bool = False,  # noqa: A002 the flag's name
) -> Shown:
    """Compare this host with a recipe: what is missing, the worst first, each with its remedy.

    The exit status is 0 only if the build may start.
    """
    from tfwright import errors
    from tfwright.doctor import look as doctor
    from tfwright.doctor import page

    facts, findings = doctor.look(job_of(recipe))
    blocks = any(finding.blocks for finding in findings)
    return Answer(
        findings,
        partial(page.show_examination, recipe, facts, everything=all),
        partial(page.examination_data, recipe, facts),
        # The status of the build that would be refused, so that a script can ask first.
        status=errors.HostError.exit_status if blocks else 0,
    )
