"""The command recipes."""

from invoke import Context

from tfwright.options import JSON, explained, task


@task(help=JSON)
def recipes(_: Context, json: bool = False) -> None:
    """List the recipes: what each one pins, how far it was verified, and whether it builds here."""
    with explained():
        from tfwright.documents import host_file
        from tfwright.recipes import listing, page

        # A row compares the recipe with this host, and starts no build.
        page.show_recipes(listing.rows(host_file.read()), as_json=json)
