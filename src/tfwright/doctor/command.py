"""The command doctor."""

import sys

from invoke import Context

from tfwright.options import JSON, RECIPE, explained, job_of, task


@task(help=RECIPE | JSON | {"all": "list what was looked for and not found, too"})
def doctor(
    _: Context,
    recipe: str = "demo",
    all: bool = False,  # noqa: A002 the flag's name
    json: bool = False,
) -> None:
    """Compare this host with a recipe: what is missing, the worst first, each with its remedy.

    The exit status is 0 only if the build may start.
    """
    with explained(recipe):
        from tfwright import errors
        from tfwright.doctor import look as doctor
        from tfwright.doctor import page

        facts, findings = doctor.look(job_of(recipe))
        page.show_examination(recipe, facts, findings, as_json=json, everything=all)
        # The status of the build that would be refused, so that a script can ask first.
        if any(finding.blocks for finding in findings):
            sys.exit(errors.HostError.exit_status)
