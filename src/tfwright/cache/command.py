"""The command cache."""

from invoke import Context

from tfwright.options import JSON, task
from tfwright.terminal.answer import Answer, Shown


@task(help=JSON)
def cache(_: Context) -> Shown:
    """Show what the build cache holds, how large it is, and what it did for the last builds."""
    from tfwright.cache import page
    from tfwright.documents import host_file
    from tfwright.tools.cache import usage

    return Answer(usage.look(host_file.read()), page.show_cache)
