"""The nginx configuration that serves an index as ``invoke index --serve`` does."""

from pathlib import Path

from tfwright.errors import RecipeError
from tfwright.tools.render import render


def configuration(folder: Path, port: int, name: str, packages: str = "packages") -> str:
    """Return a configuration for the index below `folder`, to be included in nginx's http block.

    Without a folder of `packages`, wheels may be replaced: then nothing is kept for ever.

    Raises RecipeError for a path or a server name that could end its directive.
    """
    # nginx has no quoting that is safe for every character.
    for value in (str(folder), name):
        if not value.isprintable() or set(value) & set("'\"\\;{}$# "):
            raise RecipeError(
                f"{value!r} cannot be written into an nginx configuration",
                remedy="Choose a path and a server name without quotes, blanks, backslashes, "
                "$, #, ; and braces.",
            )
    return render(
        "nginx.conf.j2", {"folder": folder, "port": port, "name": name, "packages": packages}
    )
