"""The command patch."""

from invoke import Context

from tfwright.options import RECIPE, explained, job_of, task


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
        from tfwright.documents import recipe as recipes
        from tfwright.patch import page
        from tfwright.patch import writing as patches
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
