"""The command cache."""

from invoke import Context

from tfwright.options import JSON, task
from tfwright.terminal.answer import Answer, Shown


@task(
    iterable=["why"],
    help=JSON
    | {"why": "execution log of a build, given twice: show what made the builds' actions differ"},
)
def cache(_: Context, why: list[str]) -> Shown:
    """Show what the build cache holds, how large it is, and what it did for the last builds."""
    from tfwright.cache import page
    from tfwright.cache import usage as caches
    from tfwright.documents import host_file

    settings = host_file.read()
    if why:
        return Answer(caches.why(settings, why), page.show_why)
    return Answer(caches.look(settings), page.show_cache)
