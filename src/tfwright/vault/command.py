"""The command vault."""

from invoke import Context

from tfwright.options import JSON, RECIPE, check_exclusive, job_of, task
from tfwright.terminal.answer import Answer, Shown


@task(
    needs={"deep": "links"},
    help=RECIPE
    | JSON
    | {
        "verify": "read every file and compare its checksum",
        "repair": "as --verify, and remove damaged files, so that they are downloaded again",
        "gc": "remove what no recipe and no lock needs",
        "links": "ask which sources of a recipe's archives still have them",
        "deep": "download the files and compare their checksums",
    },
)
def vault(
    _: Context,
    recipe: str = "",
    verify: bool = False,
    repair: bool = False,
    gc: bool = False,
    links: bool = False,
    deep: bool = False,
) -> Shown:
    """Show what the vault holds, how large it is, which recipes share it, and what is unused."""
    from tfwright.documents import host_file
    from tfwright.documents import recipe as recipes
    from tfwright.lock import inputs
    from tfwright.toolkit import tree
    from tfwright.vault import page, usage, verification

    check_exclusive(verify=verify or repair, gc=gc, links=links)
    # The vault is shared by all recipes, so only --links asks for one. A wrong name is refused.
    if recipe:
        recipes.find(recipe)
    build_out = host_file.read().build_out
    if links:
        rows = inputs.ask_sources(job_of(recipe or "demo"), deep=deep)
        return Answer(
            rows, page.show_links, lambda rows: [{**vars(row), "left": row.left} for row in rows]
        )
    if verify or repair:
        sound = verification.verify(build_out, tree.damages(build_out), repair=repair)
        return Answer(sound, page.show_verified, page.entries_data)
    if gc:
        removed = usage.remove_unused(build_out, usage.known_recipes())
        return Answer(removed, page.show_unused, page.entries_data)
    return Answer(usage.overview(build_out), page.show_vault, page.vault_data)
