"""The command patch."""

from collections.abc import Iterator
from functools import partial

from invoke import Context

from tfwright.options import JSON, RECIPE, job_of, task
from tfwright.terminal.answer import Answer, Shown


@task(
    positional=["name"],
    needs={"write": "refresh"},
    help=RECIPE
    | JSON
    | {
        "name": "why, in a few words: they become the patch's file name",
        "add": "a file with a patch from elsewhere, or a series by git format-patch",
        "why": "what fails without it, with the message that people search for",
        "upstream": "where it was reported or solved, or 'none' and the reason",
        "drop-when": "what must be true for it to go, such as 'the release is 1.9 or later'",
        "refresh": "number or name of a patch of the recipe to redo: makes a tree to edit",
        "write": "write the patch from that tree",
    },
)
def patch(
    _: Context,
    name: str = "",
    recipe: str = "demo",
    why: str = "",
    upstream: str = "",
    drop_when: str = "",
    add: str = "",
    refresh: str = "",
    write: bool = False,
) -> Iterator[Shown]:
    """Write a patch from your edits in a recipe's tree, or refresh one that no longer fits.

    With --add the edits are those of a patch as others have it.
    Without --refresh the edits are those in the tree of the source stage, and the new patch is
    entered into the recipe.
    """
    from pathlib import Path

    from tfwright.documents import recipe as recipes
    from tfwright.patch import adding, page
    from tfwright.patch import writing as patches
    from tfwright.pipeline import engine
    from tfwright.tools.git.patching import PatchHeader

    job, path = job_of(recipe), recipes.find_editable(recipe)
    # A build that runs would change the tree meanwhile.
    with engine.recipe_lock(job):
        if add:

            def ask(file_header: PatchHeader) -> PatchHeader:
                fields = (
                    why or file_header.why,
                    upstream or file_header.upstream,
                    drop_when or file_header.drop_when,
                )
                return page.ask_header(PatchHeader(*fields))

            for made in adding.add(job, path, Path(add), name, ask):
                yield Answer(made, page.show_patch)
            return
        # Two commands: between them a person edits the tree.
        if refresh and not write:
            show = partial(page.show_tree, recipe=job.argument, which=refresh)
            tree = patches.make_refresh_tree(job, refresh)
            data = {"tree": tree, "waiting": patches.unresolved_files(tree)}
            yield Answer(tree, show, lambda _: data)
            return
        if refresh:
            written = partial(page.show_patch, recipe=job.argument)
            yield Answer(patches.refresh(job, refresh), written)
            return
        # Asked before the patch is made: without a reason none is written.
        header = page.ask_header(PatchHeader(why, upstream, drop_when))
        yield Answer(patches.write_new(job, path, name, header), page.show_patch)
