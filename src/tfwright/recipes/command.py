"""The command recipes."""

from invoke import Context

from tfwright.options import JSON, task
from tfwright.terminal.answer import Answer, Shown


@task(help=JSON)
def recipes(_: Context) -> Shown:
    """List the recipes: what each one pins, how far it was verified, and whether it builds here."""
    from tfwright.documents import host_file
    from tfwright.recipes import listing, page

    # A row compares the recipe with this host, and starts no build.
    return Answer(listing.rows(host_file.read()), page.show_recipes)
