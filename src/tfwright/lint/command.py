"""The command lint."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from invoke import Context

from tfwright.options import check_exclusive, job_of, task
from tfwright.terminal.answer import Answer, Shown


@task(
    help={
        "json": "print JSON, for machines; only about recipes",
        "recipe": "check only this recipe, by name or path; needs no developers' tools",
        "fix": "move what a machine resolves out of the recipes into documents of its own first",
        "changed": "check only what changed since this branch left a git revision, such as main",
    }
)
def lint(
    _: Context, recipe: str = "", changed: str = "", fix: bool = False, json: bool = False
) -> Iterator[Shown]:
    """Check recipes with their patches and lock files; in a checkout also style and imports.

    The exit status is 2 if a recipe has findings, 5 if the code has.
    """
    from tfwright import errors
    from tfwright.develop import checks as develop
    from tfwright.documents import host_file
    from tfwright.documents import recipe as recipes
    from tfwright.documents.filesystem import INSTALLED
    from tfwright.lint import changes, page, rewriting
    from tfwright.lint import recipes as linting

    check_exclusive(recipe=recipe, changed=changed)
    change = changes.change_since(changed) if changed else None
    names = [recipe] if recipe else recipes.names()
    # A change of code alone leaves no recipe to check.
    names = list(change.recipes) if change else names
    if fix:
        for name in names:
            try:
                for path in rewriting.rewrite(name):
                    print(f"Wrote {path}", file=sys.stderr)
            except errors.RecipeError as fault:
                print(f"{name} stays as it is: {fault.what}", file=sys.stderr)
    findings = linting.lint_all(names, host_file.read())
    if change and change.files:
        # A patch that no recipe names any more is one of no recipe.
        findings = [*dict.fromkeys([*findings, *linting.findings_among(recipes.names())])]
    serious = any(not finding.harmless for finding in findings)
    status = errors.RecipeError.exit_status if serious else 0
    if change:
        plans = list[changes.PlannedRecipe]()
        for name in names:
            # The findings say what keeps another one from being planned.
            with suppress(errors.RecipeError):
                plans.append(changes.plan_recipe(job_of(name)))
        show = partial(page.show_review, plans=plans, findings=findings)
        more = {"plans": plans, "findings": findings}
        yield Answer(change, show, lambda change: {**vars(change), **more}, status)
    else:
        yield Answer(findings, partial(page.show_findings, names), status=status)
    # The code only with everything: a maintainer of
    # recipes needs no developers' tools. What they print is no JSON.
    if not (INSTALLED or serious or recipe or changed or json):
        develop.check_code()
