"""The command lint."""

import sys

from invoke import Context

from tfwright.options import JSON, explained, job_of, one_of, task


@task(
    help=JSON
    | {
        "recipe": "check only this recipe, by name or path; needs no developers' tools",
        "changed": "check only the recipes that differ from this git revision, such as main",
    }
)
def lint(_: Context, recipe: str = "", changed: str = "", json: bool = False) -> None:
    """Check the recipes with their patches and lock files, then the code's style and imports.

    The exit status is 2 if a recipe has findings, 5 if the code has.
    """
    with explained():
        from tfwright import errors
        from tfwright.develop import checks as develop
        from tfwright.documents import host_file
        from tfwright.documents import recipe as recipes
        from tfwright.lint import page
        from tfwright.lint import recipes as linting

        one_of(recipe=recipe, changed=changed)
        change = linting.change_since(changed) if changed else None
        names = [recipe] if recipe else recipes.names()
        # A change of code alone leaves no recipe to check.
        names = list(change.recipes) if change else names
        findings = linting.lint_all(names, host_file.read())
        if change:
            sound = linting.loadable(names, findings)
            plans = [linting.planned(job_of(name)) for name in sound]
            page.show_review(change, plans, findings, as_json=json)
        else:
            page.show_findings(names, findings, as_json=json)
        if any(not finding.harmless for finding in findings):
            sys.exit(errors.RecipeError.exit_status)
        # The code only with everything: a maintainer of
        # recipes needs no developers' tools.
        if not (recipe or changed):
            develop.check_code()
