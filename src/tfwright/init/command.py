"""The command init."""

from invoke import Context

from tfwright.options import JSON, task
from tfwright.terminal.answer import Answer, Shown


@task(positional=["directory"], help={"directory": "path; by default the working directory"} | JSON)
def init(_: Context, directory: str = ".") -> Shown:
    """Make a directory for your own recipes: recipes/, patches/ and a host file.

    What exists already stays as it is. In this directory and below it, tfwright uses these recipes
    and this host file, and builds into its build_out/.
    """
    from tfwright.init import making, page

    return Answer(making.make(directory), page.show)
