"""The command vault."""

from invoke import Context

from tfwright.options import JSON, RECIPE, explained, job_of, one_of, task


@task(
    help=RECIPE
    | JSON
    | {
        "verify": "read every file and compare its checksum",
        "repair": "as --verify, and remove damaged files, so that they are downloaded again",
        "gc": "remove what no recipe and no lock needs",
        "links": "ask which sources of a recipe's archives still have them",
        "deep": "with --links: download the files and compare their checksums",
    }
)
def vault(
    _: Context,
    recipe: str = "demo",
    verify: bool = False,
    repair: bool = False,
    gc: bool = False,
    links: bool = False,
    deep: bool = False,
    json: bool = False,
) -> None:
    """Show what the vault holds, how large it is, which recipes share it, and what is unused."""
    with explained(recipe if links else ""):
        from tfwright.documents import host_file
        from tfwright.lock import links as link_check
        from tfwright.toolkit import tree
        from tfwright.vault import page, usage, verification

        # The vault is shared by all recipes, so only --links asks for one.
        one_of(verify=verify or repair, gc=gc, links=links)
        one_of(verify=verify or repair, gc=gc, json=json)
        build_out = host_file.read().build_out
        if links:
            page.show_links(link_check.check(job_of(recipe), deep=deep), as_json=json)
        elif verify or repair:
            damages = tree.damages(build_out)
            page.show_sound(verification.verify(build_out, damages, repair=repair))
        elif gc:
            usage.collect(build_out, usage.known_recipes(), page.show_garbage)
        else:
            page.show_vault(usage.look(build_out, usage.known_recipes()), as_json=json)
