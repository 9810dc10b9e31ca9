"""Where tfwright's own files lie, and where those of whoever runs it do.

In a checkout both are the checkout. An installed tfwright has its recipes, patches and templates in
the package, which nothing writes to; a person's own lie in a directory that `tfwright init` makes.
"""

from pathlib import Path

HOST_FILE = "host.toml"
"""The host file of a directory that `tfwright init` made."""
_CHECKOUT = Path(__file__).resolve().parents[3]
INSTALLED = not (_CHECKOUT / "tasks.py").is_file()
SHIPPED = Path(__file__).resolve().parents[1] / "shipped" if INSTALLED else _CHECKOUT
"""The directory with the recipes, patches and templates that tfwright came with."""


def _own() -> Path:
    """Return the nearest directory that `tfwright init` made, or the working directory."""
    try:
        here = Path.cwd()
    except OSError:
        # It was deleted, which the command says.
        return Path("/")
    # Two marks: other programs have a host.toml, too.
    made = (
        place
        for place in (here, *here.parents)
        if (place / HOST_FILE).is_file() and (place / "recipes").is_dir()
    )
    return next(made, here)


ROOT = _own() if INSTALLED else _CHECKOUT
"""The directory with a person's own recipes/, patches/ and build_out/."""
