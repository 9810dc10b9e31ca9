"""The command cache."""

from invoke import Context

from tfwright.options import JSON, explained, task


@task(
    iterable=["why"],
    help=JSON
    | {"why": "execution log of a build, given twice: show what made the builds' actions differ"},
)
def cache(_: Context, why: list[str], json: bool = False) -> None:
    """Show what the build cache holds, how large it is, and what it did for the last builds."""
    with explained():
        from tfwright.cache import page
        from tfwright.cache import usage as caches
        from tfwright.documents import host_file

        settings = host_file.read()
        if why:
            page.show_why(caches.why(settings, why), as_json=json)
        else:
            page.show_cache(caches.look(settings), as_json=json)
