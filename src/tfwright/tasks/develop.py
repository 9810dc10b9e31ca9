"""Commands that check this project itself."""

import sys

from invoke import Context

from tfwright.tasks.common import JSON, RECIPE, explained, job_of, one_of, task


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
        from tfwright.commands import develop
        from tfwright.commands import lint as linting
        from tfwright.documents import host_file
        from tfwright.documents import recipe as recipes
        from tfwright.terminal import lint as page

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


@task
def types(_: Context) -> None:
    """Check the types of the whole project with mypy."""
    with explained():
        from tfwright.commands import develop

        develop.run("mypy")


@task(
    help={
        "everything": "run the slow and the real tests as well",
        "coverage": "measure and report coverage",
        "attack": "run the attacks instead, and print their table",
        "seconds": "with --attack: how long all attacks together go on, an hour unless given",
        "seed": "with --attack: decides the cases; the same seed tries the same ones",
        "part": "with --attack: only readers, strangers, kills, disks or damage",
    }
)
def test(
    _: Context,
    everything: bool = False,
    coverage: bool = False,
    attack: bool = False,
    seconds: float = 3600.0,
    seed: int = 1,
    part: str = "",
) -> None:
    """Run the tests: the fast ones, unless --everything is given.

    With --attack, run the attacks on readers, builds, disks and servers instead.
    """
    with explained():
        from tfwright.commands import develop

        if attack:
            develop.attack(seconds, seed, part)
        else:
            develop.test(everything=everything, coverage=coverage)


@task(help={"document": "print one schema: recipe, host or nightly"})
def schema(_: Context, document: str = "") -> None:
    """Write the JSON schemas of recipe, host file and nightly file, and the key tables in docs."""
    with explained():
        from tfwright.commands import schema as schemas
        from tfwright.errors import RecipeError

        known = schemas.schemas()
        # Checked before anything is written.
        if document and document not in known:
            raise RecipeError(f"Unknown schema {document!r}", remedy=f"Choose {', '.join(known)}.")
        if document:
            sys.stdout.write(known[document])
            return
        for path in schemas.write():
            print(path)


@task(
    positional=["name"],
    help=RECIPE
    | {
        "name": "why, in a few words: they become the patch's file name",
        "why": "what fails without it, with the message that people search for",
        "upstream": "where it was reported or solved, or 'none' and the reason",
        "drop-when": "what must be true for it to go, such as 'the release is 1.9 or later'",
        "refresh": "number of a patch of the recipe to redo: makes a tree to edit",
        "write": "with --refresh: write the patch from that tree",
    },
)
def patch(
    _: Context,
    name: str = "",
    recipe: str = "demo",
    why: str = "",
    upstream: str = "",
    drop_when: str = "",
    refresh: int = 0,
    write: bool = False,
) -> None:
    """Write a patch from your edits in a recipe's tree, or redo one that no longer fits.

    Without --refresh the edits are those in the tree of the source stage, and the new patch is
    entered into the recipe.
    """
    with explained(recipe):
        from tfwright.commands import patch as patches
        from tfwright.documents import recipe as recipes
        from tfwright.terminal import patch as page
        from tfwright.tools.git.patching import PatchHeader

        job = job_of(recipe)
        # Two commands: between them a person edits the tree.
        if refresh and not write:
            page.show_tree(patches.prepare(job, refresh), job.argument, refresh)
            return
        if refresh:
            page.show_patch(patches.refresh(job, refresh))
            return
        # Asked before the patch is made: without a reason none is written.
        header = page.ask_header(PatchHeader(why, upstream, drop_when))
        page.show_patch(patches.make(job, recipes.find(recipe), name, header))
